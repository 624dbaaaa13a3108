"""RoTTA: a mean teacher on a memory balanced over predicted classes, with robust batch norm.

Yuan, Xie and Li, "Robust Test-Time Adaptation in Dynamic Scenarios", CVPR 2023. The teacher answers, by running
statistics. Then each image joins a memory of N = `memory_size` under its predicted class, if there is room
(`BalancedMemory`). After every `update_every` images, also in the middle of a batch, both networks predict the memory
while batch norm moves its statistics and normalizes by them (`training.robust_batch_norm`), the student an augmented
copy (`training.cotta_augmentations`), and the student takes a step down

    mean_j exp(-a_j) / (1 + exp(-a_j)) CE(student_j, teacher_j),   a_j = age_j / N

with the teacher held fixed; teacher <- m teacher + (1 - m) student with m = `teacher_momentum`. Statistics are not
averaged: each network has its own. A batch is answered before it joins.

Departs from the authors' code in that dropout is off, and in that scales and shifts of layer and group norm are trained
too: it replaces batch norm alone, which leaves nothing to train in other networks.
"""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from driftline.device import to_device, to_numpy
from driftline.errors import UserError
from driftline.io.serialization import Stateful
from driftline.learners.base import Learner
from driftline.learners.settings import Count, Fraction, Inside, NonNegative, OptimizerName
from driftline.learners.test_time.base import (
    entropy,
    freeze_but_normalization,
    scale_diagnostics,
    split_batches,
)
from driftline.models.batch_norm import replace_batch_norm
from driftline.registry import register
from driftline.tasks import Task
from driftline.training.cotta_augmentations import cotta_augment
from driftline.training.fit import optimizer_step
from driftline.training.modes import only_training
from driftline.training.normalization import affine_parameters, norm_layers
from driftline.training.optimizers import new_optimizer
from driftline.training.robust_batch_norm import RobustBatchNorm
from driftline.types import Answers, Inputs, Network, Reveal, Samples


@register("method", "rotta")
@dataclass
class RoTTA(Learner):
    """RoTTA: a mean teacher on a memory balanced over predicted classes, with robust batch norm."""

    batch: Annotated[int, Field(ge=1)] = 256  # maximum batch size; larger batches are split evenly
    lr: NonNegative = 1e-3  # learning rate
    momentum: Inside = 0.9  # momentum of the optimizer
    optimizer: OptimizerName = "adam"  # name of the optimizer
    memory_size: Count = 64  # number of images in the memory
    update_every: Count = 64  # images between updates
    statistics_rate: Fraction = 0.05  # share of a batch in the statistics of batch norm
    teacher_momentum: Fraction = 0.999  # momentum of the teacher

    min_reveal: ClassVar[Reveal] = Reveal.INPUTS
    requires = "network"

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        freeze_but_normalization(model, task, "rotta")
        replace_batch_norm(model, lambda layer: RobustBatchNorm(layer, self.statistics_rate))
        self.teacher: nn.Module = copy.deepcopy(model)
        weights = affine_parameters(norm_layers(model).values())
        for weight in weights:
            weight.requires_grad_()
        self.optim = new_optimizer(self.optimizer, weights, lr=self.lr, momentum=self.momentum)
        self.memory = BalancedMemory(self.memory_size, task.width)
        self.n_images = 0

    def predict(self, x: Inputs) -> Answers:
        with torch.no_grad():
            outputs = [self.teacher(part) for part in self._batches(x)]
        return self._task.decode(to_numpy(torch.cat(outputs)))

    def answer(self, x: Inputs) -> Answers:
        return self._task.decode(to_numpy(torch.cat([self._adapt_batch(part) for part in self._batches(x)])))

    def adapt(self, x: Inputs) -> None:
        self.answer(x)

    def diagnostics(self) -> Mapping[str, float]:
        """Return the mean size of the student's norm scales, by block, and the number of images in the memory."""
        return {**scale_diagnostics(self.model), "images in memory": float(len(self.memory.items))}

    def _batches(self, x: Inputs) -> list[Tensor]:
        parts = split_batches(self.model, x, self.batch, 1, "rotta")
        if parts[0].ndim != 4:
            raise UserError("rotta augments images, and these inputs are not images")
        return parts

    def _adapt_batch(self, x: Tensor) -> Tensor:
        """Return the teacher's outputs, then let each image join the memory, and update when it is time."""
        with torch.no_grad():
            outputs: Tensor = self.teacher(x)
        labels, uncertainties = to_numpy(outputs.argmax(dim=1)).tolist(), to_numpy(entropy(outputs)).tolist()
        for image, label, uncertainty in zip(x, labels, uncertainties, strict=True):
            self.memory.add(image, label, uncertainty)
            self.n_images += 1
            if self.n_images % self.update_every == 0:
                self._update()
        return outputs

    def _update(self) -> None:
        images, ages = self.memory.content()
        with only_training(self.teacher, RobustBatchNorm), torch.no_grad():
            target = self.teacher(images).softmax(dim=1)
        random = self.seed.child("augmentation", self.n_images).torch()
        with only_training(self.model, RobustBatchNorm):
            outputs = self.model(cotta_augment(images, random))
        losses = -(target * outputs.log_softmax(dim=1)).sum(dim=1)
        optimizer_step(self.optim, ((-ages / self.memory_size).sigmoid() * losses).mean())
        with torch.no_grad():
            for slow, fast in zip(self.teacher.parameters(), self.model.parameters(), strict=True):
                slow.lerp_(fast, 1 - self.teacher_momentum)


class BalancedMemory(Stateful):
    """Images with their predicted class, uncertainty and age, about as many of each class.

    A class with fewer than size / classes images takes another while there is room; in a full memory, an image of the
    most numerous classes may leave for it. A class with as many or more gives up one of its own. The image with the
    highest score leaves, if that is higher than the new image's, otherwise the new one is dropped; then all are one
    image older.
    """

    def __init__(self, size: int, classes: int) -> None:
        self.size, self.classes = size, classes
        self.images: Tensor | None = None
        self.items: list[dict[str, float]] = []  # in order of arrival; `row`: the place in `images`

    def add(self, image: Tensor, label: int, uncertainty: float) -> None:
        """Offer an image; all images in the memory grow older by one."""
        item: dict[str, float] = {"row": 0, "label": label, "uncertainty": uncertainty, "age": 0}
        if (row := self._free_row(item)) is not None:
            if self.images is None:
                self.images = image.new_zeros((self.size, *image.shape))
            self.images[row] = image
            self.items.append({**item, "row": row})
        for one in self.items:
            one["age"] += 1

    def content(self) -> tuple[Tensor, Tensor]:
        """Return the images and their ages."""
        assert self.images is not None
        ages = to_device(torch.tensor([float(item["age"]) for item in self.items]))
        return self.images[[int(item["row"]) for item in self.items]], ages

    def score(self, item: Mapping[str, float]) -> float:
        """Return how much an image should leave: more if it is old, and if its answer is uncertain."""
        age = 1 / (1 + math.exp(-item["age"] / self.size))
        return age + item["uncertainty"] / math.log(self.classes)

    def _free_row(self, new: Mapping[str, float]) -> int | None:
        """Return the place for a new image, from which another one may have left; None if it is dropped."""
        counts = Counter(item["label"] for item in self.items)
        classes = {new["label"]}
        if counts[new["label"]] < self.size / self.classes:
            if len(self.items) < self.size:
                return len(self.items)
            classes = {label for label, count in counts.items() if count == max(counts.values())}
        candidates = [item for item in reversed(self.items) if item["label"] in classes]
        leaving = max(candidates, key=self.score)  # the first of equals: the last that came
        if self.score(leaving) <= self.score(new):
            return None
        self.items.remove(leaving)
        return int(leaving["row"])
