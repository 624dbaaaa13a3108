"""NOTE: instance-aware batch norm, and a memory that is balanced over predicted classes.

Gong et al., "NOTE: Robust Continual Test-time Adaptation Against Temporal Correlation", NeurIPS 2022. Each image is
answered by itself, by running statistics (`models.iabn`). Then it joins a memory of N = `memory_size` images under its
predicted class c, by prediction-balanced reservoir sampling (`BalancedReservoir`). After every `update_every` images,
also in the middle of a batch, batch norm sees the memory in training mode, so that running statistics move by
`statistics_rate`, and scales and shifts take a step down

    -1/(N C) sum over images and classes of p log(p + 1e-6)

The loss is a mean over classes too, as in the authors' code; Adam does not notice.

The paper trains the source network with instance-aware batch norm: `model: {name: iabn, network: resnet18}`. In a
network that was trained with batch norm, its layers are converted, which costs accuracy before any adaptation, and
a note says so. Departs from the authors' code in that dropout is off in updates; in that scales and shifts of layer and
group norm are trained too; and in that one run may go through several domains: their numbers are from a new start in
each.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from driftline.device import to_numpy
from driftline.io.serialization import Stateful
from driftline.learners.base import Learner
from driftline.learners.settings import AtLeastTwo, Fraction, Inside, NonNegative, OptimizerName
from driftline.learners.test_time.base import freeze_but_normalization, scale_diagnostics
from driftline.models.batch_norm import replace_batch_norm
from driftline.models.iabn import InstanceAwareBatchNorm
from driftline.models.preprocessing import to_float_batch
from driftline.registry import register
from driftline.seeds import Seed
from driftline.tasks import Task
from driftline.training.fit import optimizer_step
from driftline.training.modes import only_training
from driftline.training.normalization import affine_parameters, norm_layers
from driftline.training.optimizers import new_optimizer
from driftline.training.torch_model import torch_model
from driftline.types import Answers, Inputs, Network, Reveal, Samples

SMALLEST = 1e-6
log = logging.getLogger("driftline")


@register("method", "note")
@dataclass
class NOTE(Learner):
    """NOTE: instance-aware batch norm, and entropy minimization on a memory balanced over predicted classes."""

    lr: NonNegative = 1e-4  # learning rate
    momentum: Inside = 0.9  # momentum of the optimizer
    optimizer: OptimizerName = "adam"  # name of the optimizer
    memory_size: AtLeastTwo = 64  # number of images in the memory
    update_every: AtLeastTwo = 64  # images between updates
    statistics_rate: Fraction = 0.01  # share of the memory in the running statistics
    shrinkage: NonNegative = 4.0  # standard errors by which an image may differ, where batch norm is converted

    min_reveal: ClassVar[Reveal] = Reveal.INPUTS
    requires = "network"

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        freeze_but_normalization(model, task, "note")
        if convert_batch_norm(model, self.shrinkage):
            log.warning("note: NOTE's network was trained with batch norm, not with iabn: its layers are converted")
        for layer in model.modules():
            if isinstance(layer, InstanceAwareBatchNorm):
                layer.momentum = self.statistics_rate
        weights = affine_parameters(norm_layers(model).values())
        for weight in weights:
            weight.requires_grad_()
        self.optim = new_optimizer(self.optimizer, weights, lr=self.lr, momentum=self.momentum)
        self.memory = BalancedReservoir(self.memory_size, task.width, self.seed.child("memory"))
        self.n_images = 0

    def predict(self, x: Inputs) -> Answers:
        inputs = torch_model(self.model).encode(x)
        with torch.no_grad():
            outputs = [self.model(to_float_batch(inputs[rows])) for rows in torch.arange(len(inputs)).split(128)]
        return self._task.decode(to_numpy(torch.cat(outputs)))

    def answer(self, x: Inputs) -> Answers:
        inputs, outputs, start = torch_model(self.model).encode(x), [], 0
        while start < len(inputs):
            until = start + self.update_every - self.n_images % self.update_every  # the next update, or beyond the end
            outputs.append(self._join(to_float_batch(inputs[start:until])))
            start = until
        return self._task.decode(to_numpy(torch.cat(outputs)))

    def adapt(self, x: Inputs) -> None:
        self.answer(x)

    def diagnostics(self) -> Mapping[str, float]:
        """Return the mean size of the norm scales, by block, and the number of images in the memory."""
        return {**scale_diagnostics(self.model), "images in memory": float(len(self.memory))}

    def _join(self, x: Tensor) -> Tensor:
        """Return outputs for images, which join the memory; update if it is time."""
        with torch.no_grad():
            outputs: Tensor = self.model(x)
        for image, label in zip(x, to_numpy(outputs.argmax(dim=1)).tolist(), strict=True):
            self.memory.add(image, label)
        self.n_images += len(x)
        if self.n_images % self.update_every == 0:
            with only_training(self.model, InstanceAwareBatchNorm):
                optimizer_step(self.optim, mean_entropy(self.model(self.memory.content())))
        return outputs


def convert_batch_norm(model: nn.Module, shrinkage: float) -> bool:
    """Make batch norm instance-aware where it is not; return whether any layer was converted."""
    plain = {layer for layer in norm_layers(model).values() if isinstance(layer, _BatchNorm)}
    plain = {layer for layer in plain if not isinstance(layer, InstanceAwareBatchNorm)}
    replace_batch_norm(model, lambda layer: InstanceAwareBatchNorm(layer, shrinkage) if layer in plain else layer)
    return bool(plain)


def mean_entropy(outputs: Tensor) -> Tensor:
    """Return the mean of -p log p over rows and classes."""
    p = outputs.softmax(dim=1)
    return -(p * (p + SMALLEST).log()).mean()


class BalancedReservoir(Stateful):
    """Images under their predicted class, about as many of each: prediction-balanced reservoir sampling.

    In a full memory, an image of a class that is not among the most numerous takes the place of a random image of one
    that is. An image of the most numerous classes takes the place of one of its own class, with the probability of a
    reservoir: the images held of the class by those ever predicted as it.
    """

    def __init__(self, size: int, classes: int, seed: Seed) -> None:
        self.size = size
        self.images: Tensor | None = None
        self.labels = np.zeros(0, int)
        self.n_seen = np.zeros(classes, int)
        self.rng = seed.numpy()

    def __len__(self) -> int:
        return len(self.labels)

    def add(self, image: Tensor, label: int) -> None:
        """Offer an image."""
        self.n_seen[label] += 1
        if (row := self._row(label)) is None:
            return
        if self.images is None:
            self.images = image.new_zeros((self.size, *image.shape))
        self.images[row] = image
        self.labels = np.append(self.labels, label) if row == len(self) else self.labels
        self.labels[row] = label

    def content(self) -> Tensor:
        """Return the images."""
        assert self.images is not None
        return self.images[: len(self)]

    def _row(self, label: int) -> int | None:
        """Return the place for an image of a class; None if it is dropped."""
        if len(self) < self.size:
            return len(self)
        held = np.bincount(self.labels, minlength=len(self.n_seen))
        largest = np.flatnonzero(held == held.max())
        if label in largest:
            if self.rng.random() > held[label] / self.n_seen[label]:
                return None
            leaving = label
        else:
            leaving = self.rng.choice(largest)
        return int(self.rng.choice(np.flatnonzero(self.labels == leaving)))
