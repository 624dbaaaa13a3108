"""CoTTA: mean-teacher pseudo-labels with augmentation averaging and stochastic weight restore.

Wang et al., "Continual Test-Time Domain Adaptation", CVPR 2022. Per batch: the student answers; the teacher answers, as
the mean of its logits for `n_augmentations` augmented copies (`training.cotta_augmentations`) if the source network's
mean largest probability on the batch is below `confidence_threshold`, else once; the student takes a step down the mean
of

    1/2 CE(student, teacher) + 1/2 CE(teacher, student),   CE(a, b) = -sum_c softmax(b)_c log softmax(a)_c

with the teacher held fixed; teacher <- m * teacher + (1 - m) * student with m = `teacher_momentum`; then every trained
weight of the student goes back to its first value with probability `restore_probability`. The answers are the
teacher's, from before this.

As in the RDumb study only scales and shifts are trained; `parameters="all"` trains every weight, as the paper does.
Departs from that study's code, which disturbs images that are normalized already and so cuts off most of their values:
here normalization is inside the network. The settings are those for ImageNet. With 10 classes no batch is ever less
sure than 0.1; thresholds of 0.92 (10 classes) and 0.72 (100 classes) with `restore_probability=0.01` are in use, at 34
forward passes for each batch.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from driftline.device import to_device
from driftline.errors import UserError
from driftline.learners.settings import Count, Fraction, Inside, NonNegative
from driftline.learners.test_time.base import NormAdapter, scale_diagnostics
from driftline.registry import register
from driftline.seeds import Seed
from driftline.tasks import Task
from driftline.training.cotta_augmentations import cotta_augment
from driftline.training.fit import optimizer_step
from driftline.training.optimizers import new_optimizer
from driftline.types import Network, Samples


@register("method", "cotta")
@dataclass
class CoTTA(NormAdapter):
    """CoTTA: mean-teacher pseudo-labels with augmentation averaging and stochastic weight restore."""

    lr: NonNegative = 0.01
    momentum: Inside = 0.9
    parameters: Literal["norm", "all"] = "norm"  # weights to train: scales and shifts of normalization layers, or all
    confidence_threshold: NonNegative = (
        0.1  # confidence of the source network above which no augmentations are averaged
    )
    n_augmentations: Count = 32  # number of augmentations to average over
    teacher_momentum: Fraction = 0.999  # momentum of the teacher
    restore_probability: Fraction = 0.001  # probability that a weight is restored to its source value

    quick: ClassVar[Mapping[str, str]] = {}
    transient = frozenset({"_source_model"})

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        self._source_model: nn.Module = copy.deepcopy(model).requires_grad_(False)
        self.teacher: nn.Module = copy.deepcopy(self._source_model)
        self.optim = new_optimizer(self.optimizer, self._weights, lr=self.lr, momentum=self.momentum, nesterov=True)
        self.steps = 0

    def adapted_parameters(self, layers: dict[str, nn.Module]) -> list[nn.Parameter]:
        return list(self.model.parameters()) if self.parameters == "all" else super().adapted_parameters(layers)

    def outputs(self, x: Tensor, batch_offset: int) -> Tensor:
        """Return the teacher's outputs."""
        if x.ndim != 4:
            raise UserError("cotta augments images, and these inputs are not images")
        confidence = self._source_model(x).softmax(dim=1).amax(dim=1).mean()
        if confidence >= self.confidence_threshold:
            answer: Tensor = self.teacher(x)
            return answer
        random = self._seed(batch_offset).child("copies").torch()
        total = torch.zeros(())
        for _ in range(self.n_augmentations):
            total = total + self.teacher(cotta_augment(x, random))
        return total / self.n_augmentations

    def adapt_batch(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            teacher_outputs = self.outputs(x, 0)
        optimizer_step(self.optim, symmetric_cross_entropy(self.model(x), teacher_outputs).mean())
        self._update_teacher_and_restore()
        self.steps += 1
        return teacher_outputs

    def diagnostics(self) -> Mapping[str, float]:
        """Return the mean size of the student's norm scales, by block."""
        return scale_diagnostics(self.model)

    @torch.no_grad()
    def _update_teacher_and_restore(self) -> None:
        for slow, fast in zip(self.teacher.parameters(), self.model.parameters(), strict=True):
            slow.lerp_(fast, 1 - self.teacher_momentum)
        random = self._seed(0).child("forget").torch()
        for weight, first in zip(self._weights, self._initial_weights, strict=True):
            restored = to_device(torch.rand(weight.shape, generator=random) < self.restore_probability)
            weight.copy_(torch.where(restored, first, weight))

    def _seed(self, batch_offset: int) -> Seed:
        """Return the seed of the batch that is `batch_offset` batches from now."""
        return self.seed.child("step", self.steps + batch_offset)


def symmetric_cross_entropy(student: Tensor, teacher: Tensor) -> Tensor:
    """Return 1/2 CE(student, teacher) + 1/2 CE(teacher, student) of each sample, from logits."""
    ours, theirs = student.log_softmax(dim=1), teacher.log_softmax(dim=1)
    return -0.5 * (theirs.exp() * ours + ours.exp() * theirs).sum(dim=1)
