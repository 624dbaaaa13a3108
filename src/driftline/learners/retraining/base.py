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
from driftline.learners.supervised.base import SupervisedLearner
from driftline.metrics.online_tas import online_tas, online_ttr
from driftline.registry import register
from driftline.tasks import Task
from driftline.training.model import as_model
from driftline.types import Samples, concat_rows, take_rows


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
class RetrainingPolicy(SupervisedLearner):
    """Base class for retraining policies. `window`: the number of latest label deliveries to train on; None for all.

    `most`: the largest number of training samples, drawn uniformly from more.
    """

    window: Count | None = None
    max_samples: Count | None = None

    transient = frozenset({"_seconds"})

    def prepare(self, model: Any, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        self.history: list[tuple[Any, np.ndarray]] = []
        self.n_batches = 0
        self.n_train_rows = 0
        self.retrained_at: list[int] = []
        self.deployed = upstream is not None
        self._seconds = 0.0  # no part of the state: time must not matter

    def log(self) -> PolicyLog:
        """Return what the policy has done so far."""
        return PolicyLog(tuple(self.retrained_at), self.n_train_rows, self._seconds)

    def should_retrain(self, x: Any, y: np.ndarray) -> bool:
        """Return whether to retrain, given labels of samples the model was not trained on."""
        raise NotImplementedError

    def learn(self, x: Any, y: Any) -> None:
        retrain = self.should_retrain(x, y) if self.deployed else True
        self.history.append((x, y))
        if self.window is not None:
            self.history = self.history[-self.window :]
        if retrain:
            self.retrain()
        self.n_batches += 1

    def retrain(self) -> None:
        """Train a new model on the stored labels, and deploy it."""
        x, y = concat_rows([x for x, _ in self.history]), np.concatenate([y for _, y in self.history])
        self.fit_and_count(self, x, y)
        self.retrained_at.append(self.n_batches)
        self.deployed = True

    def fit_and_count(self, learner: SupervisedLearner, x: Any, y: np.ndarray) -> None:
        """Train a learner from scratch on at most `most` samples, and count them."""
        if self.max_samples is not None and len(y) > self.max_samples:
            random = self.seed.child("rows", self.n_batches).numpy()
            chosen = np.sort(random.choice(len(y), self.max_samples, replace=False))
            x, y = take_rows(x, chosen), y[chosen]
        began = time.perf_counter()
        learner.train_from_scratch(x, y)
        self._seconds += time.perf_counter() - began
        self.n_train_rows += len(y)

    def quality(self, learner: SupervisedLearner, x: Any, y: np.ndarray) -> float:
        """Return the accuracy, or for numbers the mean of max(0, 1 - (error / scale)^2)."""
        return float(np.mean(self._task.correct(learner.predict(x).prediction, y)))


@register("method", "train-once")
@dataclass
class TrainOnce(RetrainingPolicy):
    """No retraining after the first labels."""

    def should_retrain(self, x: Any, y: np.ndarray) -> bool:
        return False


@register("method", "retrain-every-k")
@dataclass
class RetrainEveryK(RetrainingPolicy):
    """Retraining at every k-th delivery of labels, on all of them unless `window` is set."""

    k: Count = 4

    def should_retrain(self, x: Any, y: np.ndarray) -> bool:
        return self.n_batches % self.k == 0


@register("method", "retrain-window")
@dataclass
class RetrainOnWindow(RetrainingPolicy):
    """Retraining at every delivery of labels, on the latest ones."""

    window: Count | None = 3

    def should_retrain(self, x: Any, y: np.ndarray) -> bool:
        return True


@register("method", "retrain-all")
@dataclass
class RetrainOnAll(RetrainingPolicy):
    """Retraining at every delivery of labels, on all so far."""

    def should_retrain(self, x: Any, y: np.ndarray) -> bool:
        return True


@register("method", "retrain-on-tas")
@dataclass
class RetrainOnTAS(RetrainingPolicy):
    """Retraining when the online TAS of the deployed model (`metrics.online`) falls below a threshold.

    Each time labels come, a share is held out, a challenger is trained on the rest of them, and both are evaluated on
    the held-out share. The challengers are counted as training.
    """

    window: Count | None = 3
    threshold: float = 0.95
    holdout: Inside = 0.2

    def prepare(self, model: Any, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        self.deployed_quality: list[float] = []
        self.challenger_quality: list[float] = []
        self.estimates: list[float] = []
        self.ratios: list[float] = []  # the online TTR behind each estimate

    def log(self) -> PolicyLog:
        return replace(super().log(), online_tas=tuple(self.estimates), online_ttr=tuple(self.ratios))

    def should_retrain(self, x: Any, y: np.ndarray) -> bool:
        if len(y) < 2:  # too few to train on some and evaluate on others
            return False
        order = self.seed.child("holdout", self.n_batches).numpy().permutation(len(y))
        cut = min(max(round(self.holdout * len(y)), 1), len(y) - 1)
        aside, rest = np.sort(order[:cut]), np.sort(order[cut:])
        challenger = self._challenger()
        self.fit_and_count(challenger, take_rows(x, rest), y[rest])
        self.deployed_quality.append(self.quality(self, take_rows(x, aside), y[aside]))
        self.challenger_quality.append(self.quality(challenger, take_rows(x, aside), y[aside]))
        self.estimates.append(float(online_tas(self.deployed_quality, self.challenger_quality)[-1]))
        self.ratios.append(float(online_ttr(self.deployed_quality, self.challenger_quality)[-1]))
        return self.estimates[-1] < self.threshold

    def retrain(self) -> None:
        super().retrain()
        self.deployed_quality, self.challenger_quality = [], []

    def _challenger(self) -> SupervisedLearner:
        """Return a challenger: a learner of the same kind with its own copy of the model."""
        twin = copy.copy(self)
        twin.model = as_model(self.model).clone()
        return twin
