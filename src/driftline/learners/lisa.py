"""LISA, intra-label: mix each example with another of its class, so that what differs within a class is averaged out.

Yao et al., "Improving Out-of-Distribution Robustness via Selective Augmentation", ICML 2022; in this form, with the
partner drawn from all periods rather than from another domain: Yao et al., "Wild-Time", NeurIPS 2022.

The partner is drawn uniformly from the training samples of the class, and so is the example itself once in as many
draws as the class has samples. Pixels are mixed as floats.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from driftline.errors import UserError
from driftline.learners.pooled import Pooled
from driftline.registry import register
from driftline.tasks import Classification, Task
from driftline.training.torch_model import torch_model
from driftline.types import Samples

if TYPE_CHECKING:
    from torch import Tensor


class SameLabel:
    """The rows of each label, to draw from."""

    def __init__(self, labels: np.ndarray) -> None:
        self.order = np.argsort(labels, kind="stable")
        self.counts = np.bincount(labels)
        self.first = np.cumsum(self.counts) - self.counts

    def draw(self, labels: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """For each label one row that has it, uniformly."""
        rows: np.ndarray = self.order[self.first[labels] + random.integers(self.counts[labels])]
        return rows


@register("method", "lisa")
@dataclass
class LISA(Pooled):
    """Loss of y on w * x + (1 - w) * x', where x' has the label y too and w ~ Beta(alpha, alpha) for each example."""

    alpha: float = 2.0

    requires = "network"

    def prepare(self, model: Any, task: Task, upstream: Samples | None = None) -> None:
        if self.alpha <= 0:
            raise UserError(f"lisa.alpha is more than 0; this is {self.alpha}")
        if not isinstance(task, Classification):
            raise UserError("lisa mixes examples of the same class, and this task has no classes: use mixup")
        super().prepare(model, task, upstream)

    def train(self, x: Any, y: Any) -> None:

        self._random = self.seed.child("lesson", self.lessons, "mixing").numpy()
        self._pool, self._same = torch_model(self.model).encode(x), SameLabel(self._task.targets(y))
        super().train(x, y)
        del self._pool, self._same

    def update(self, x: Tensor, y: Tensor) -> None:
        import torch

        from driftline.models.inputs import as_input
        from driftline.training.objectives import mixed

        rows = self._same.draw(y.numpy(), self._random)
        weights = torch.from_numpy(self._random.beta(self.alpha, self.alpha, len(y)))
        super().update(mixed(x, as_input(self._pool[rows]), weights), y)
