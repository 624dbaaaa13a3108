"""Base class for retraining policies: when to train a new model, and on which labels.

A policy decides at every delivery of labels whether to train from scratch; the first labels always train the first
model. `n_train_rows` counts all training samples, challengers included; `retrained_at` lists the deliveries (from 0)
with a training.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from driftline.learners.settings import Count
from driftline.learners.supervised.base import SupervisedLearner
from driftline.tasks import Task
from driftline.types import Inputs, Network, Samples, Targets, concat_rows, take_rows


@dataclass(frozen=True)
class PolicyLog:
    """The trainings of a policy, and the signals behind its decisions."""

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
    """Base class for retraining policies."""

    window: Count | None = None  # number of latest label deliveries to train on; None: all
    max_samples: Count | None = None  # maximum number of training samples, drawn uniformly from more; None: no limit

    transient = frozenset({"_seconds"})

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        self.history: list[tuple[Inputs, np.ndarray]] = []
        self.n_batches = 0
        self.n_train_rows = 0
        self.retrained_at: list[int] = []
        self.deployed = upstream is not None
        self._seconds = 0.0  # no part of the state: time must not matter

    def log(self) -> PolicyLog:
        """Return what the policy has done so far."""
        return PolicyLog(tuple(self.retrained_at), self.n_train_rows, self._seconds)

    def should_retrain(self, x: Inputs, y: np.ndarray) -> bool:
        """Return whether to retrain, given labels of samples the model was not trained on."""
        raise NotImplementedError

    def learn(self, x: Inputs, y: Targets) -> None:
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

    def fit_and_count(self, learner: SupervisedLearner, x: Inputs, y: np.ndarray) -> None:
        """Train a learner from scratch on at most `max_samples` samples, and count them."""
        if self.max_samples is not None and len(y) > self.max_samples:
            random = self.seed.child("rows", self.n_batches).numpy()
            chosen = np.sort(random.choice(len(y), self.max_samples, replace=False))
            x, y = take_rows(x, chosen), y[chosen]
        began = time.perf_counter()
        learner.train_from_scratch(x, y)
        self._seconds += time.perf_counter() - began
        self.n_train_rows += len(y)

    def quality(self, learner: SupervisedLearner, x: Inputs, y: np.ndarray) -> float:
        """Return the accuracy, or for numbers the mean of max(0, 1 - (error / scale)^2)."""
        return float(np.mean(self._task.correct(learner.predict(x).prediction, y)))
