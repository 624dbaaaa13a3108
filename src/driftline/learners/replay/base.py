"""Base class for learners that train in epochs over the samples of a step, with one optimizer for the whole stream."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from driftline.learners.replay.selection import train_epochs
from driftline.learners.settings import BelowOne, Count, CountOrZero, Positive
from driftline.learners.supervised.base import SupervisedLearner
from driftline.seeds import Seed
from driftline.tasks import Task, mean_loss
from driftline.training.optimizers import LRSchedule, lr_factor
from driftline.training.regularization import trainable_parameters
from driftline.types import Inputs, Network, Reveal, Samples, Targets


@dataclass
class EpochLearner(SupervisedLearner):
    """A learner that trains in epochs. It keeps the upstream samples, if there are any."""

    batch: Count = 8
    updates: CountOrZero = 0  # the most updates per step; 0: no limit
    epochs: Count = 10  # epochs per training round
    max_grad_norm: Positive | None = None  # the largest gradient norm; None: no limit
    lr_schedule: LRSchedule = "constant"  # how the learning rate falls to 0 over the stream
    lr_updates: Count = 10_000  # updates of the whole stream after which the learning rate is 0, unless it is constant
    warmup_updates: CountOrZero = 0  # updates in which the learning rate rises from 0
    label_smoothing: BelowOne = 0.0  # share of the target that is spread over all classes

    requires = "network"
    min_reveal: ClassVar[Reveal] = Reveal.ERRORS
    quick: ClassVar[Mapping[str, str]] = {}
    transient = frozenset({"_upstream"})

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        self._upstream = upstream

    def new_optimizer(self) -> None:
        super().new_optimizer()
        self.n_updates = 0
        self.optim.register_step_pre_hook(self._before_step)

    def _before_step(self, *_: object) -> None:
        """Clip gradients and set the learning rate."""
        if self.max_grad_norm is not None:
            nn.utils.clip_grad_norm_(trainable_parameters(self.model), self.max_grad_norm)
        for group in self.optim.param_groups:
            factor = lr_factor(self.lr_schedule, self.n_updates, self.lr_updates, self.warmup_updates)
            group["lr"] = self.lr * self.lr_decay**self.training_rounds * factor
        self.n_updates += 1

    def loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        return mean_loss(self._task, outputs, y, self.label_smoothing)

    def train_epochs(self, x: Inputs, y: Targets, seed: Seed) -> None:
        """Train for `epochs` epochs, from the present weights and optimizer state."""
        limits = {"epochs": self.epochs, "batch": self.batch, "max_updates": self.updates}
        train_epochs(self.model, self._task, x, y, self.update, seed=seed, augment=self.augment, **limits)
