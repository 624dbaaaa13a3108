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

from driftline.learners.retraining.base import PolicyLog, RetrainingPolicy
from driftline.learners.settings import Count
from driftline.registry import register
from driftline.tasks import Task
from driftline.types import Inputs, Network, Samples, State, take_rows

DETECTORS = ("adwin", "page-hinkley", "kswin", "ddm")


def new_detector(name: str, seed: int = 0) -> Any:
    """Return a new river detector."""
    if name == "kswin":
        return drift.KSWIN(seed=seed)
    return {"adwin": drift.ADWIN, "page-hinkley": _page_hinkley, "ddm": drift.binary.DDM}[name]()


@register("method", "retrain-on-drift")
@dataclass
class RetrainOnDrift(RetrainingPolicy):
    """Retraining when a drift detector fires; the new model gets a new detector.

    The detector gets the error of each newly labelled sample in order, or of `max_errors_fed` of them evenly spread.
    """

    detector: Literal["adwin", "page-hinkley", "kswin", "ddm"] = "adwin"  # name of the drift detector of river
    window: Count | None = 3
    max_errors_fed: int = 500  # maximum number of errors per delivery that the detector gets, evenly spread

    transient = frozenset({"_detector"})

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        self.errors_fed: list[float] = []
        self.alarms: list[int] = []
        self._detector = self._new_detector()

    def log(self) -> PolicyLog:
        return replace(super().log(), alarms=tuple(self.alarms))

    def should_retrain(self, x: Inputs, y: np.ndarray) -> bool:
        rows = np.unique(np.linspace(0, len(y) - 1, min(len(y), self.max_errors_fed)).round().astype(int))
        right = self._task.correct(self.predict(take_rows(x, rows)).prediction, y[rows])
        fired = False
        for error in 1.0 - right:
            self.errors_fed.append(float(error))
            fired |= update(self._detector, float(error))
        if fired:
            self.alarms.append(self.n_batches)
        return fired

    def retrain(self) -> None:
        super().retrain()
        self.errors_fed = []
        self._detector = self._new_detector()

    def restore(self, saved: State) -> None:
        """Restore the detector by feeding it the same errors again."""
        super().restore(saved)
        self._detector = self._new_detector()
        for error in self.errors_fed:
            update(self._detector, error)

    def _new_detector(self) -> Any:
        return new_detector(self.detector, self.seed.child("detector", len(self.retrained_at)).value % 2**32)


def _page_hinkley() -> Any:
    return drift.PageHinkley(mode="up")


def update(detector: Any, error: float) -> bool:
    """Feed an error (0 to 1) to a detector and return whether it fires."""
    binary = isinstance(detector, drift.binary.DDM)  # it counts errors; half a scale away is one
    detector.update(error > 0.5 if binary else error)
    return bool(detector.drift_detected)
