"""GDumb: a greedy class-balanced buffer, and a network trained from scratch on it alone.

Prabhu, Torr and Dokania, "GDumb: A Simple Approach that Questions Our Progress in Continual Learning", ECCV 2020. A
sample enters the buffer if its class has less than capacity / (number of classes so far) samples there; if the buffer
is full, it takes the place of a random sample of the largest class (of several, the first). Otherwise it is dropped.
After each delivery of labels the network is trained on the buffer from its initial weights, or once at the end if it is
evaluated only then: SGD with momentum, gradients of a length of at most 10, and cosine cycles of the learning rate. Of
256 equal parts of the training, the first has a tenth of `lr`; cycles of 1, 2, 4, ... 128 parts follow, each from `lr`
down to `min_lr`.

Departs from the authors' code: it trains for 256 passes; here the training has the length and mini-batches of the
benchmark's training budget, and the schedule is stretched to it. It has no sampler, but takes the first samples of each
class; it reports its best epoch on the test set; and it trains with CutMix on CIFAR. Here the last update counts,
without CutMix.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from torch import nn

from driftline.io.serialization import Stateful
from driftline.learners.online.base import check_classification
from driftline.learners.settings import BelowOne, Count, NonNegative, OptimizerName, Positive
from driftline.learners.supervised.base import SupervisedLearner
from driftline.registry import register
from driftline.seeds import Seed
from driftline.tasks import Task
from driftline.training.regularization import trainable_parameters
from driftline.types import Inputs, Network, Reveal, Samples, Targets, concat_rows, take_rows

PARTS = 256  # of a training; a pass each in the paper


class BalancedBuffer(Stateful):
    """At most `capacity` samples, as many of each class as come, up to an equal share."""

    transient = frozenset({"_capacity"})

    def __init__(self, capacity: int, seed: Seed) -> None:
        self._capacity = capacity
        self.x: Inputs = None
        self.y: Targets = np.zeros(0, int)
        self.classes: list[int] = []
        self.rng = seed.numpy()

    def __len__(self) -> int:
        return len(self.y)

    def add(self, x: Inputs, y: np.ndarray) -> None:
        """Offer samples, in this order."""
        known = len(self)
        rows: dict[int, list[int]] = {label: np.flatnonzero(self.y == label).tolist() for label in self.classes}
        for row, label in enumerate(y.tolist(), start=known):
            mine = rows.setdefault(label, [])
            if len(mine) * len(rows) >= self._capacity:
                continue
            if sum(map(len, rows.values())) == self._capacity:
                largest = max(rows.values(), key=len)
                largest.pop(self.rng.integers(len(largest)))
            mine.append(row)
        kept = np.sort(np.concatenate([np.array(one, int) for one in rows.values()]))
        self.x = take_rows(x if self.x is None else concat_rows([self.x, x]), kept)
        self.y, self.classes = np.concatenate([self.y, y])[kept], list(rows)


@register("method", "gdumb")
@dataclass
class GDumb(SupervisedLearner):
    """GDumb: training from scratch on a class-balanced buffer."""

    capacity: Count = 500  # size of the buffer
    lr: NonNegative = 0.05
    min_lr: NonNegative = 0.0005  # learning rate at the end of each cycle
    optimizer: OptimizerName = "sgd"
    momentum: BelowOne | None = 0.9
    weight_decay: NonNegative = 1e-6
    max_grad_norm: Positive = 10.0  # maximum norm of the gradient

    requires = "network"
    min_reveal = Reveal.ERRORS
    transient = frozenset({"_n_updates", "_total_updates"})
    cost_free = frozenset({"min_lr", "max_grad_norm"})

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        check_classification(self, task)
        self.buffer = BalancedBuffer(self.capacity, self.seed.child("memory"))

    def new_optimizer(self) -> None:
        super().new_optimizer()
        self.optim.register_step_pre_hook(self._before_update)

    def _before_update(self, *_: object) -> None:
        nn.utils.clip_grad_norm_(trainable_parameters(self.model), self.max_grad_norm)
        for group in self.optim.param_groups:
            group["lr"] = cyclic_lr(self._n_updates / self._total_updates, self.lr, self.min_lr)
        self._n_updates += 1

    def fit_round(self, x: Inputs, y: np.ndarray, updates: int, batch: int, seed: Seed) -> None:
        self._n_updates, self._total_updates = 0, updates
        super().fit_round(x, y, updates, batch, seed)

    def learn(self, x: Inputs, y: Targets) -> None:
        self.buffer.add(x, y)
        if not self.evaluated_at_end:
            self.train_from_scratch(self.buffer.x, self.buffer.y)

    def finish(self) -> None:
        if self.evaluated_at_end and len(self.buffer):
            self.train_from_scratch(self.buffer.x, self.buffer.y)


def cyclic_lr(progress: float, lr: float, min_lr: float) -> float:
    """Return the learning rate after this share of a training.

    >>> [round(cyclic_lr(part / 256, 1.0, 0.0), 3) for part in (0, 1, 1.5, 2, 3, 128, 192)]
    [0.1, 1.0, 0.5, 1.0, 0.5, 1.0, 0.5]
    """
    part = PARTS * progress
    if part < 1:
        return lr / 10
    start = 2.0 ** math.floor(math.log2(part))  # a cycle is as long as everything before it
    return min_lr + (lr - min_lr) * (1 + math.cos(math.pi * (part - start) / start)) / 2
