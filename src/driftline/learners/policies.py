"""Retraining policies as learners: when to train a new model, and on what.

Each waits for labels, decides, and if it is time trains afresh; the first labels always train the first model. `rows`
counts all samples it trained on, challengers included, and `retrained` the lessons (from 0) after which it did.
"""

from __future__ import annotations

import copy
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from driftline.errors import UserError
from driftline.learners.trained import Trained
from driftline.metrics.online import online_tas, online_ttr
from driftline.models.estimator import Estimator
from driftline.registry import register
from driftline.tasks import Task
from driftline.types import Samples, join, take


@dataclass(frozen=True)
class PolicyLog:
    """What a policy did, and the signals by which it decided."""

    retrained_at: tuple[int, ...]
    """The deliveries of labels, from 0, after which it trained a new model."""
    n_train_rows: int
    seconds: float
    alarms: tuple[int, ...] = ()
    """The deliveries of labels at which its detector fired."""
    online_tas: tuple[float, ...] = ()
    online_ttr: tuple[float, ...] = ()


@dataclass
class Policy(Trained):
    """Something that decides when to retrain. `window`: on how many of the latest lessons; none means on all.

    `most`: with more samples than this, a uniform draw of so many is trained on.
    """

    window: int | None = None
    most: int | None = None

    def prepare(self, model: Any, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        for name in ("window", "most"):
            given = getattr(self, name)
            if given is not None and given < 1:
                raise UserError(f"{name} of a policy is at least 1, or none for no limit, not {given}")
        self.seen: list[tuple[Any, np.ndarray]] = []
        self.heard = 0
        self.rows = 0
        self.retrained: list[int] = []
        self.deployed = upstream is not None
        self._seconds = 0.0  # no part of the state: time must not matter

    def log(self) -> PolicyLog:
        """Return what the policy has done so far."""
        return PolicyLog(tuple(self.retrained), self.rows, self._seconds)

    def due(self, x: Any, y: np.ndarray) -> bool:
        """Whether these labels, of samples the model has never trained on, are a reason to retrain."""
        raise NotImplementedError

    def learn(self, x: Any, y: Any) -> None:
        retrain = self.due(x, y) if self.deployed else True
        self.seen.append((x, y))
        if self.window is not None:
            self.seen = self.seen[-self.window :]
        if retrain:
            self.retrain()
        self.heard += 1

    def retrain(self) -> None:
        """Train a new model on what the policy keeps, and deploy it."""
        x, y = join([x for x, _ in self.seen]), np.concatenate([y for _, y in self.seen])
        self.fit_counted(self, x, y)
        self.retrained.append(self.heard)
        self.deployed = True

    def fit_counted(self, learner: Trained, x: Any, y: np.ndarray) -> None:
        """Train a learner afresh, on no more than `most` samples, and count it."""
        if self.most is not None and len(y) > self.most:
            random = self.seed.child("rows", self.heard).numpy()
            chosen = np.sort(random.choice(len(y), self.most, replace=False))
            x, y = take(x, chosen), y[chosen]
        began = time.perf_counter()
        learner.train_afresh(x, y)
        self._seconds += time.perf_counter() - began
        self.rows += len(y)

    def quality(self, learner: Trained, x: Any, y: np.ndarray) -> float:
        """Mean correctness: accuracy, or for numbers 1 - (error / scale)^2 cut at 0."""
        return float(np.mean(self._task.correct(learner.predict(x).prediction, y)))


@register("method", "never")
@dataclass
class Never(Policy):
    """Train on the first labels, then never again."""

    def due(self, x: Any, y: np.ndarray) -> bool:
        return False


@register("method", "every-k")
@dataclass
class EveryK(Policy):
    """Retrain each time labels have come `k` times, on all of them unless `window` says otherwise."""

    k: int = 4

    def prepare(self, model: Any, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        if self.k < 1:
            raise UserError(f"every-k retrains each k-th time, and k is at least 1, not {self.k}")

    def due(self, x: Any, y: np.ndarray) -> bool:
        return self.heard % self.k == 0


@register("method", "window")
@dataclass
class Window(Policy):
    """Retrain each time labels come, on the latest few lessons."""

    window: int | None = 3

    def due(self, x: Any, y: np.ndarray) -> bool:
        return True


@register("method", "all-history")
@dataclass
class AllHistory(Policy):
    """Retrain each time labels come, on everything so far."""

    def due(self, x: Any, y: np.ndarray) -> bool:
        return True


@register("method", "on-online-tas")
@dataclass
class OnOnlineTas(Policy):
    """Retrain when the online TAS of the deployed model (see `metrics.online`) falls below a threshold.

    Each time labels come, a share is held out, a challenger is trained on the rest of them, and both are examined on
    the held-out share. The challengers are counted as training.
    """

    window: int | None = 3
    threshold: float = 0.95
    holdout: float = 0.2

    def prepare(self, model: Any, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        if not 0 < self.holdout < 1:
            raise UserError(f"holdout is a share between 0 and 1, not {self.holdout}")
        self.old: list[float] = []
        self.fresh: list[float] = []
        self.estimates: list[float] = []
        self.ratios: list[float] = []  # the online TTR behind each estimate

    def log(self) -> PolicyLog:
        return replace(super().log(), online_tas=tuple(self.estimates), online_ttr=tuple(self.ratios))

    def due(self, x: Any, y: np.ndarray) -> bool:
        if len(y) < 2:  # too few to train on some and examine on others
            return False
        order = self.seed.child("holdout", self.heard).numpy().permutation(len(y))
        cut = min(max(round(self.holdout * len(y)), 1), len(y) - 1)
        aside, rest = np.sort(order[:cut]), np.sort(order[cut:])
        challenger = self._twin()
        self.fit_counted(challenger, take(x, rest), y[rest])
        self.old.append(self.quality(self, take(x, aside), y[aside]))
        self.fresh.append(self.quality(challenger, take(x, aside), y[aside]))
        self.estimates.append(float(online_tas(self.old, self.fresh)[-1]))
        self.ratios.append(float(online_ttr(self.old, self.fresh)[-1]))
        return self.estimates[-1] < self.threshold

    def retrain(self) -> None:
        super().retrain()
        self.old, self.fresh = [], []

    def _twin(self) -> Trained:
        """Another learner of the same kind, whose training leaves this one's model alone."""
        twin = copy.copy(self)
        twin.model = copy.copy(self.model) if isinstance(self.model, Estimator) else copy.deepcopy(self.model)
        return twin
