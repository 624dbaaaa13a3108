"""Mixup: training on convex combinations of pairs of examples.

Zhang et al., "mixup: Beyond Empirical Risk Minimization", ICLR 2018.

One weight per mini-batch, as in the authors' code. Wild-Time's shipped Yearbook configuration named mixup runs LISA;
this is mixup.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from driftline.learners.settings import Positive
from driftline.learners.supervised.base import Start, SupervisedLearner
from driftline.registry import register
from driftline.training.objectives import mix
from driftline.types import Inputs, Targets


@register("method", "mixup")
@dataclass
class Mixup(SupervisedLearner):
    """Mixup: w * loss(y_a) + (1 - w) * loss(y_b) on w * x_a + (1 - w) * x_b, where w ~ Beta(alpha, alpha)."""

    start: Start = "fresh"  # start of each training: the initial weights, or the previous ones
    alpha: Positive = 2.0  # parameter of the beta distribution of mixing weights

    requires = "network"
    transient = frozenset({"_rng"})

    def learn(self, x: Inputs, y: Targets) -> None:
        self.learn_cumulative(x, y)

    def train(self, x: Inputs, y: Targets) -> None:
        self._rng = self.seed.child("lesson", self.training_rounds, "mixing").numpy()
        super().train(x, y)

    def batch_loss(self, x: Tensor, y: Tensor) -> Tensor:
        weight = self._rng.beta(self.alpha, self.alpha)
        other = torch.from_numpy(self._rng.permutation(len(y)))
        outputs = self.model(mix(x, x[other], weight))
        return mix(self._task.loss(outputs, y), self._task.loss(outputs, y[other]), weight).mean()
