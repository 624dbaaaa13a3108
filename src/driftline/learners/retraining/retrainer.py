"""The common part of retraining policies: which labels a new model is trained on.

A policy decides at every delivery of labels whether to train from scratch; the first labels always train the first
model. `n_train_rows` counts all training samples, challengers included; `retrained_at` lists the deliveries (from 0)
with a training.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from driftline.io.serialization import Stateful
from driftline.learners.supervised.base import SupervisedLearner
from driftline.seeds import Seed
from driftline.types import Inputs, Targets, concat_rows, take_rows


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


class Retrainer(Stateful):
    """Keeps the latest labels, trains a policy's model from scratch on them, and counts what that takes.

    `window`: number of latest label deliveries to train on; None: all. `max_samples`: maximum number of training
    samples, drawn uniformly from more; None: no limit.
    """

    transient = frozenset({"_seconds"})

    def __init__(self, window: int | None, max_samples: int | None, seed: Seed, deployed: bool) -> None:
        self.window, self.max_samples, self.seed = window, max_samples, seed
        self.deployed = deployed
        """Whether there is a model; without one, the first labels train it."""
        self.history: list[tuple[Inputs, np.ndarray]] = []
        self.n_batches = 0
        self.n_train_rows = 0
        self.retrained_at: list[int] = []
        self._seconds = 0.0  # no part of the state: time must not matter

    def log(self) -> PolicyLog:
        """Return what the policy has done so far."""
        return PolicyLog(tuple(self.retrained_at), self.n_train_rows, self._seconds)

    def learn(self, learner: SupervisedLearner, x: Inputs, y: Targets, retrain: bool) -> None:
        """Store labels; train a new model on the stored ones if `retrain`."""
        self.history.append((x, y))
        if self.window is not None:
            self.history = self.history[-self.window :]
        if retrain:
            rows = concat_rows([x for x, _ in self.history]), np.concatenate([y for _, y in self.history])
            self.fit_and_count(learner, *rows)
            self.retrained_at.append(self.n_batches)
            self.deployed = True
        self.n_batches += 1

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
