"""Standard training: the whole network at intervals, on all labels so far.

Wallingford et al., "In the Wild: From ML Models to Pragmatic ML Systems", 2020 (NED). Departs from the authors' code
as `lifelong` says, and in that inputs are not cropped and flipped at random.

Compute is what the passes really need: three times the forward one, less the gradient of the first layer's inputs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from driftline.learners.lifelong import Lifelong
from driftline.learners.settings import NonNegative
from driftline.models.inputs import as_input
from driftline.registry import register
from driftline.seeds import Seed
from driftline.tasks import Task
from driftline.training import pulse
from driftline.training.encode import last_linear
from driftline.training.epochs import shuffled
from driftline.training.fit import descend_on, lesson
from driftline.training.freezing import rest_frozen
from driftline.training.modes import training
from driftline.types import Samples


@register("method", "standard-training")
@dataclass
class StandardTraining(Lifelong):
    """Standard training of the whole network on all labels so far; the optimizer state is kept."""

    lr: NonNegative = 0.01

    def prepare(self, model: Any, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        self.trained &= taught_rows(last_linear(model))
        self.descent = torch.optim.SGD(
            self.to_train(), lr=self.lr, momentum=self.momentum, weight_decay=self.weight_decay
        )

    def to_train(self) -> list[Any]:
        """Return the parameters to train, or groups of them with their own learning rates."""
        return list(self.model.parameters())

    def lesson(self) -> None:
        inputs, targets = lesson(self.model, self.memory.x, self.memory.y)
        for epoch in pulse.each(range(self.epochs)):
            self.practise(inputs, targets, self.seed.child("lesson", self.lessons, epoch))

    def practise(self, inputs: Tensor, targets: Tensor, seed: Seed) -> None:
        """Train for one epoch."""
        with training(self.model, seed.child("noise")):
            rest_frozen(self.model)
            for rows in pulse.each(shuffled(len(targets), self.batch, seed.child("order"))):
                x, y = as_input(inputs[rows]), targets[rows]
                descend_on(self.descent, self.model, self.objective, x, y)

    def objective(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the loss of a mini-batch."""
        return self.loss(self.model(x), y)


def taught_rows(layer: nn.Linear) -> np.ndarray:
    """Return which rows of a last layer are not zero; pretraining that does not use it leaves zeros."""
    taught: np.ndarray = layer.weight.detach().ne(0).any(dim=1).numpy()
    return taught
