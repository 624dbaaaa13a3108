"""Retrain when a drift detector from river fires on the errors of the deployed model.

ADWIN (Bifet and Gavaldà, "Learning from Time-Changing Data with Adaptive Windowing", SDM 2007), Page-Hinkley (Page,
"Continuous Inspection Schemes", Biometrika 1954), KSWIN (Raab et al., "Reactive Soft Prototype Computing for Concept
Drift Streams", Neurocomputing 2020) and DDM (Gama et al., "Learning with Drift Detection", SBIA 2004), each with the
default settings of river; Page-Hinkley looks for rising errors only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from river import drift

from driftline.learners.retraining.retrainer import PolicyLog, Retrainer
from driftline.learners.settings import Count
from driftline.learners.supervised.base import SupervisedLearner
from driftline.registry import register
from driftline.tasks import Task
from driftline.types import Inputs, Network, Samples, State, Targets, take_rows


def new_detector(name: str, seed: int = 0) -> Any:
    """Return a new river detector."""
    if name == "kswin":
        return drift.KSWIN(seed=seed)
    return {"adwin": drift.ADWIN, "page-hinkley": _page_hinkley, "ddm": drift.binary.DDM}[name]()


@register("method", "retrain-on-drift")
@dataclass
class RetrainOnDrift(SupervisedLearner):
    """Retraining when a drift detector fires; the new model gets a new detector.

    The detector gets the error of each newly labeled sample in order, or of `max_errors_fed` of them evenly spread.
    """

    detector: Literal["adwin", "page-hinkley", "kswin", "ddm"] = "adwin"  # name of the drift detector of river
    window: Count | None = 3  # number of latest label deliveries to train on; None: all
    max_samples: Count | None = None  # maximum number of training samples, drawn uniformly from more; None: no limit
    max_errors_fed: int = 500  # maximum number of errors per delivery that the detector gets, evenly spread

    transient = frozenset({"_detector"})

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        self.retrainer = Retrainer(self.window, self.max_samples, self.seed, deployed=upstream is not None)
        self.errors_fed: list[float] = []
        self.alarms: list[int] = []
        self._detector = self._new_detector()

    def log(self) -> PolicyLog:
        """Return what the policy has done so far."""
        return replace(self.retrainer.log(), alarms=tuple(self.alarms))

    def learn(self, x: Inputs, y: Targets) -> None:
        retrain = not self.retrainer.deployed or self.detects_drift(x, y)
        self.retrainer.learn(self, x, y, retrain)
        if retrain:
            self.errors_fed = []
            self._detector = self._new_detector()

    def detects_drift(self, x: Inputs, y: np.ndarray) -> bool:
        """Feed the errors of the deployed model to the detector, and return whether it fires."""
        rows = np.unique(np.linspace(0, len(y) - 1, min(len(y), self.max_errors_fed)).round().astype(int))
        right = self._task.correct(self.predict(take_rows(x, rows)).prediction, y[rows])
        fired = False
        for error in 1.0 - right:
            self.errors_fed.append(float(error))
            fired |= update(self._detector, float(error))
        if fired:
            self.alarms.append(self.retrainer.n_batches)
        return fired

    def restore(self, saved: State) -> None:
        """Restore the detector by feeding it the same errors again."""
        super().restore(saved)
        self._detector = self._new_detector()
        for error in self.errors_fed:
            update(self._detector, error)

    def _new_detector(self) -> Any:
        return new_detector(self.detector, self.seed.child("detector", len(self.retrainer.retrained_at)).value % 2**32)


def _page_hinkley() -> Any:
    return drift.PageHinkley(mode="up")


def update(detector: Any, error: float) -> bool:
    """Feed an error (0 to 1) to a detector and return whether it fires."""
    binary = isinstance(detector, drift.binary.DDM)  # it counts errors; half a scale away is one
    detector.update(error > 0.5 if binary else error)
    return bool(detector.drift_detected)
