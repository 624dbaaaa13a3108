"""Base class for learners that train in epochs over the samples of a step, with one optimizer for the whole stream."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from driftline.learners.replay.selection import train_epochs
from driftline.learners.settings import Count, CountOrZero, Positive
from driftline.learners.supervised.base import SupervisedLearner
from driftline.seeds import Seed
from driftline.tasks import Task
from driftline.training.regularization import trainable_parameters
from driftline.types import Inputs, Network, Reveal, Samples, Targets


@dataclass
class EpochLearner(SupervisedLearner):
    """A learner that trains in epochs. It keeps the upstream samples, if there are any."""

    batch: Count = 8
    updates: CountOrZero = 0  # the most updates per step; 0: no limit
    epochs: Count = 10
    max_grad_norm: Positive | None = None  # the largest gradient norm; None: no limit

    requires = "network"
    min_reveal: ClassVar[Reveal] = Reveal.ERRORS
    quick: ClassVar[Mapping[str, str]] = {}
    transient = frozenset({"_upstream"})

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        self._upstream = upstream

    def new_optimizer(self) -> None:
        super().new_optimizer()
        if self.max_grad_norm is not None:
            self.optim.register_step_pre_hook(self._clip_gradients)

    def _clip_gradients(self, *_: object) -> None:
        nn.utils.clip_grad_norm_(trainable_parameters(self.model), self.max_grad_norm or math.inf)

    def train_epochs(self, x: Inputs, y: Targets, seed: Seed) -> None:
        """Train for `epochs` epochs, from the present weights and optimizer state."""
        limits = {"epochs": self.epochs, "batch": self.batch, "max_updates": self.updates}
        train_epochs(self.model, self._task, x, y, self.update, seed=seed, **limits)
