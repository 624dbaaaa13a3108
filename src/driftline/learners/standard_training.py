"""Standard training: all weights, on all that was told, now and then.

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
    """Train the whole network, for some epochs, on every sample told so far; the optimiser's state is kept."""

    lr: float = 0.01

    def prepare(self, model: Any, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        self.trained &= taught_rows(last_linear(model))
        self.descent = torch.optim.SGD(
            self.to_train(), lr=self.lr, momentum=self.momentum, weight_decay=self.weight_decay
        )

    def to_train(self) -> list[Any]:
        """The weights that lessons move, or groups of them with learning rates of their own."""
        return list(self.model.parameters())

    def lesson(self) -> None:
        inputs, targets = lesson(self.model, self.memory.x, self.memory.y)
        for epoch in pulse.each(range(self.epochs)):
            self.practise(inputs, targets, self.seed.child("lesson", self.lessons, epoch))

    def practise(self, inputs: Tensor, targets: Tensor, seed: Seed) -> None:
        """One epoch: each sample once, in a random order."""
        with training(self.model, seed.child("noise")):
            rest_frozen(self.model)
            for rows in pulse.each(shuffled(len(targets), self.batch, seed.child("order"))):
                x, y = as_input(inputs[rows]), targets[rows]
                descend_on(self.descent, self.model, self.objective, x, y)

    def objective(self, x: Tensor, y: Tensor) -> Tensor:
        """What a step makes smaller."""
        return self.loss(self.model(x), y)


def taught_rows(layer: nn.Linear) -> np.ndarray:
    """Which rows of a last layer say something; pretraining that does not use it leaves zeros, which know no class."""
    taught: np.ndarray = layer.weight.detach().ne(0).any(dim=1).numpy()
    return taught
