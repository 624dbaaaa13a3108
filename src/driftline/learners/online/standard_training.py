"""Standard training: the whole network at intervals, on all labels so far.

Wallingford et al., "In the Wild: From ML Models to Pragmatic ML Systems", 2020 (NED). Departs from the authors' code
as `online.base` says, and in that inputs are cropped and flipped at random only with `augment`.

Compute is what the passes really need: three times the forward one, less the gradient of the first layer's inputs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor, nn

from driftline.device import to_numpy
from driftline.learners.online.base import OnlineLearner
from driftline.learners.settings import Augmentation, NonNegative
from driftline.models.preprocessing import to_float_batch
from driftline.registry import register
from driftline.seeds import Seed
from driftline.tasks import Task
from driftline.training import profiling
from driftline.training.augmentations import augmented
from driftline.training.cached_features import classifier_layer
from driftline.training.early_stopping import shuffled_batches
from driftline.training.fit import descend_on, training_tensors
from driftline.training.freezing import eval_frozen
from driftline.training.mac_counter import is_spent
from driftline.training.modes import training
from driftline.types import Network, Samples


@register("method", "standard-training")
@dataclass
class StandardTraining(OnlineLearner):
    """Standard training of the whole network on all labels so far; the optimizer state is kept."""

    lr: NonNegative = 0.01
    augment: Augmentation = "none"  # augmentation of training images; NED: crop-flip

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        self.known_classes &= initialized_rows(classifier_layer(model))
        self.optim = self.new_optimizer(self.trainable_parameters())

    def trainable_parameters(self) -> list[Any]:
        """Return the parameters to train, or groups of them with their own learning rates."""
        return list(self.model.parameters())

    def train_on_buffer(self) -> None:
        inputs, targets = training_tensors(self.model, self.buffer.x, self.buffer.y)
        for epoch in profiling.sample(range(self.epochs)):
            self.train_epoch(inputs, targets, self.seed.child("lesson", self.training_rounds, epoch))

    def train_epoch(self, inputs: Tensor, targets: Tensor, seed: Seed) -> None:
        """Train for one epoch."""
        inputs = augmented(inputs, self.augment, seed)
        with training(self.model, seed.child("noise")):
            eval_frozen(self.model)
            for rows in profiling.sample(shuffled_batches(len(targets), self.batch, seed.child("order"))):
                if is_spent(self.model):
                    return
                x, y = to_float_batch(inputs[rows]), targets[rows]
                descend_on(self.optim, self.model, self.training_loss, x, y)

    def training_loss(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the loss of a mini-batch."""
        return self.loss(self.model(x), y)


def initialized_rows(layer: nn.Linear) -> np.ndarray:
    """Return which rows of a last layer are not zero; pretraining that does not use it leaves zeros."""
    trained = to_numpy(layer.weight.detach().ne(0).any(dim=1))
    return trained
