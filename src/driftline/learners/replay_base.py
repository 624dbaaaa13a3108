"""Base class for learners that train in epochs over the samples of a step, with one optimizer for the whole stream."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import nn

from driftline.learners.settings import Count, CountOrZero, Positive
from driftline.learners.trained import Trained
from driftline.seeds import Seed
from driftline.tasks import Task
from driftline.training.penalties import trainable
from driftline.training.replay import train_epochs
from driftline.types import Reveal, Samples


@dataclass
class EpochLearner(Trained):
    """A learner that trains in epochs. It keeps the upstream samples, if there are any."""

    batch: Count = 8
    updates: CountOrZero = 0  # the most updates per step; 0: no limit
    epochs: Count = 10
    clip: Positive | None = None  # the largest gradient norm; None: no limit

    requires = "network"
    sees: ClassVar[Reveal] = Reveal.ERRORS
    quick: ClassVar[Mapping[str, str]] = {}
    transient = frozenset({"_upstream"})

    def prepare(self, model: Any, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        self._upstream = upstream

    def new_optimizer(self) -> None:
        super().new_optimizer()
        if self.clip is not None:
            self.descent.register_step_pre_hook(self._clip_gradients)

    def _clip_gradients(self, *_: Any) -> None:
        nn.utils.clip_grad_norm_(trainable(self.model), self.clip or math.inf)

    def refine(self, x: Any, y: Any, seed: Seed) -> None:
        """Train for `epochs` epochs, from the present weights and optimizer state."""
        limits = {"epochs": self.epochs, "batch": self.batch, "most": self.updates}
        train_epochs(self.model, self._task, x, y, self.update, seed=seed, **limits)
