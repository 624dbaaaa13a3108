"""Mixup: train on lines between pairs of examples, with the loss mixed as the inputs are.

Zhang et al., "mixup: Beyond Empirical Risk Minimization", ICLR 2018.

One weight per mini-batch, as in the authors' code. Wild-Time's shipped Yearbook configuration named mixup runs LISA;
this is mixup.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from driftline.errors import UserError
from driftline.learners.pooled import Pooled
from driftline.registry import register
from driftline.tasks import Task
from driftline.types import Samples

if TYPE_CHECKING:
    from torch import Tensor


@register("method", "mixup")
@dataclass
class Mixup(Pooled):
    """w * loss(y_a) + (1 - w) * loss(y_b) on w * x_a + (1 - w) * x_b, where w ~ Beta(alpha, alpha)."""

    alpha: float = 2.0

    requires = "network"

    def prepare(self, model: Any, task: Task, upstream: Samples | None = None) -> None:
        if self.alpha <= 0:
            raise UserError(f"mixup.alpha is more than 0; this is {self.alpha}")
        super().prepare(model, task, upstream)

    def train(self, x: Any, y: Any) -> None:
        self._random = self.seed.child("lesson", self.lessons, "mixing").numpy()
        super().train(x, y)

    def loss(self, x: Tensor, y: Tensor) -> Tensor:
        import torch

        from driftline.training.objectives import mixed

        weight = self._random.beta(self.alpha, self.alpha)
        other = torch.from_numpy(self._random.permutation(len(y)))
        outputs = self.model(mixed(x, x[other], weight))
        return mixed(self._task.loss(outputs, y), self._task.loss(outputs, y[other]), weight).mean()
