"""Mixup: training on convex combinations of pairs of examples.

Zhang et al., "mixup: Beyond Empirical Risk Minimization", ICLR 2018.

One weight per mini-batch, as in the authors' code. Wild-Time's shipped Yearbook configuration named mixup runs LISA;
this is mixup.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from driftline.learners.pooled import Pooled
from driftline.learners.settings import Positive
from driftline.registry import register
from driftline.training.objectives import mixed


@register("method", "mixup")
@dataclass
class Mixup(Pooled):
    """Mixup: w * loss(y_a) + (1 - w) * loss(y_b) on w * x_a + (1 - w) * x_b, where w ~ Beta(alpha, alpha)."""

    alpha: Positive = 2.0

    requires = "network"
    transient = frozenset({"_random"})

    def train(self, x: Any, y: Any) -> None:
        self._random = self.seed.child("lesson", self.lessons, "mixing").numpy()
        super().train(x, y)

    def batch_loss(self, x: Tensor, y: Tensor) -> Tensor:
        weight = self._random.beta(self.alpha, self.alpha)
        other = torch.from_numpy(self._random.permutation(len(y)))
        outputs = self.model(mixed(x, x[other], weight))
        return mixed(self._task.loss(outputs, y), self._task.loss(outputs, y[other]), weight).mean()
