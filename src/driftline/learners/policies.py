"""Retraining policies: when to train a new model, and on which labels.

Each decides at every delivery of labels whether to train from scratch; the first labels always train the first model.
`rows` counts all training samples, challengers included; `retrained` lists the deliveries (from 0) with a training.
"""

from __future__ import annotations

import copy
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from driftline.learners.settings import Count, Inside
from driftline.learners.trained import Trained
from driftline.metrics.online import online_tas, online_ttr
from driftline.registry import register
from driftline.tasks import Task
from driftline.training.model import as_model
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
    """Base class for retraining policies. `window`: the number of latest label deliveries to train on; None for all.

    `most`: the largest number of training samples, drawn uniformly from more.
    """

    window: Count | None = None
    most: Count | None = None

    transient = frozenset({"_seconds"})

    def prepare(self, model: Any, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
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
        """Return whether to retrain, given labels of samples the model was not trained on."""
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
        """Train a new model on the stored labels, and deploy it."""
        x, y = join([x for x, _ in self.seen]), np.concatenate([y for _, y in self.seen])
        self.fit_counted(self, x, y)
        self.retrained.append(self.heard)
        self.deployed = True

    def fit_counted(self, learner: Trained, x: Any, y: np.ndarray) -> None:
        """Train a learner from scratch on at most `most` samples, and count them."""
        if self.most is not None and len(y) > self.most:
            random = self.seed.child("rows", self.heard).numpy()
            chosen = np.sort(random.choice(len(y), self.most, replace=False))
            x, y = take(x, chosen), y[chosen]
        began = time.perf_counter()
        learner.train_afresh(x, y)
        self._seconds += time.perf_counter() - began
        self.rows += len(y)

    def quality(self, learner: Trained, x: Any, y: np.ndarray) -> float:
        """Return the accuracy, or for numbers the mean of max(0, 1 - (error / scale)^2)."""
        return float(np.mean(self._task.correct(learner.predict(x).prediction, y)))


@register("method", "never")
@dataclass
class Never(Policy):
    """No retraining after the first labels."""

    def due(self, x: Any, y: np.ndarray) -> bool:
        return False


@register("method", "every-k")
@dataclass
class EveryK(Policy):
    """Retraining at every k-th delivery of labels, on all of them unless `window` is set."""

    k: Count = 4

    def due(self, x: Any, y: np.ndarray) -> bool:
        return self.heard % self.k == 0


@register("method", "window")
@dataclass
class Window(Policy):
    """Retraining at every delivery of labels, on the latest ones."""

    window: Count | None = 3

    def due(self, x: Any, y: np.ndarray) -> bool:
        return True


@register("method", "all-history")
@dataclass
class AllHistory(Policy):
    """Retraining at every delivery of labels, on all so far."""

    def due(self, x: Any, y: np.ndarray) -> bool:
        return True


@register("method", "on-online-tas")
@dataclass
class OnOnlineTas(Policy):
    """Retraining when the online TAS of the deployed model (`metrics.online`) falls below a threshold.

    Each time labels come, a share is held out, a challenger is trained on the rest of them, and both are evaluated on
    the held-out share. The challengers are counted as training.
    """

    window: Count | None = 3
    threshold: float = 0.95
    holdout: Inside = 0.2

    def prepare(self, model: Any, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        self.old: list[float] = []
        self.fresh: list[float] = []
        self.estimates: list[float] = []
        self.ratios: list[float] = []  # the online TTR behind each estimate

    def log(self) -> PolicyLog:
        return replace(super().log(), online_tas=tuple(self.estimates), online_ttr=tuple(self.ratios))

    def due(self, x: Any, y: np.ndarray) -> bool:
        if len(y) < 2:  # too few to train on some and evaluate on others
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
        """Return a challenger: a learner of the same kind with its own copy of the model."""
        twin = copy.copy(self)
        twin.model = as_model(self.model).clone()
        return twin
