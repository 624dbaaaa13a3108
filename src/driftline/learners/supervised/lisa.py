"""LISA (intra-label): mixup of each example with another one of its class.

Yao et al., "Improving Out-of-Distribution Robustness via Selective Augmentation", ICML 2022; in this form, with the
partner drawn from all periods rather than from another domain: Yao et al., "Wild-Time", NeurIPS 2022.

The partner is drawn uniformly from the training samples of the class, and so is the example itself once in as many
draws as the class has samples. Pixels are mixed as floats.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from driftline.device import to_numpy
from driftline.errors import UserError
from driftline.learners.settings import Positive
from driftline.learners.supervised.base import Start, SupervisedLearner
from driftline.models.preprocessing import to_float_batch
from driftline.registry import register
from driftline.tasks import Classification, Task
from driftline.training.augmentations import augmented
from driftline.training.objectives import mix
from driftline.training.torch_model import torch_model
from driftline.types import Inputs, Network, Samples, Targets


class RowsByLabel:
    """Rows by label, to draw from."""

    def __init__(self, labels: np.ndarray) -> None:
        self.row_order = np.argsort(labels, kind="stable")
        self.counts = np.bincount(labels)
        self.first = np.cumsum(self.counts) - self.counts

    def draw(self, labels: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """Return one random row for each label."""
        rows: np.ndarray = self.row_order[self.first[labels] + random.integers(self.counts[labels])]
        return rows


@register("method", "lisa")
@dataclass
class LISA(SupervisedLearner):
    """LISA: loss of y on w * x + (1 - w) * x', where x' has the same label and w ~ Beta(alpha, alpha) per example."""

    start: Start = "fresh"  # start of each training: the initial weights, or the previous ones
    alpha: Positive = 2.0  # parameter of the beta distribution of mixing weights

    requires = "network"

    transient = frozenset({"_inputs", "_rng", "_rows_by_label"})

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        if not isinstance(task, Classification):
            raise UserError("lisa mixes examples of the same class, and this task has no classes: use mixup")
        super().prepare(model, task, upstream)

    def learn(self, x: Inputs, y: Targets) -> None:
        self.learn_cumulative(x, y)

    def train(self, x: Inputs, y: Targets) -> None:
        seed = self.seed.child("lesson", self.training_rounds, "mixing")
        self._rng, self._rows_by_label = seed.numpy(), RowsByLabel(self._task.targets(y))
        self._inputs = augmented(torch_model(self.model).encode(x), self.augment, seed)
        super().train(x, y)
        del self._inputs, self._rows_by_label

    def update(self, x: Tensor, y: Tensor) -> None:
        rows = self._rows_by_label.draw(to_numpy(y), self._rng)
        weights = torch.from_numpy(self._rng.beta(self.alpha, self.alpha, len(y)))
        super().update(mix(x, to_float_batch(self._inputs[rows]), weights), y)
