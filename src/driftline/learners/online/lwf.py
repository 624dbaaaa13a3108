"""LwF: learning without forgetting, standard training with distillation from the upstream network.

Li and Hoiem, "Learning without Forgetting", TPAMI 2017, in the form of Wallingford et al., 2020 (NED): a frozen copy of
the pretrained network is the teacher, with outputs divided by a temperature of 2. Distillation covers only the classes
that were seen in the stream and that the teacher knows; its outputs for novel classes mean nothing.

    loss = cross-entropy + weight * mean over samples of -sum_c softmax(old / T)_c log softmax(new / T)_c

with both softmaxes over these classes alone. The paper gives no weight; 1 is that of Li and Hoiem.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import log_softmax, softmax

from driftline.learners.online.base import OnlineLearner
from driftline.learners.settings import NonNegative, Positive
from driftline.registry import register
from driftline.tasks import Task
from driftline.training.fit import fit_input_scaling
from driftline.training.torch_model import torch_model
from driftline.types import Network, Samples


@register("method", "lwf")
@dataclass
class LwF(OnlineLearner):
    """LwF: cross-entropy plus distillation from the network as it was before the stream."""

    lr: NonNegative = 0.01
    distillation_weight: float = 1.0  # weight of distillation; cross-entropy has 1
    temperature: Positive = 2.0  # temperature of distillation

    transient = frozenset({"_teacher_classes", "_distilled_classes"})
    cost_free = frozenset({"temperature"})

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        self.teacher = copy.deepcopy(model).requires_grad_(False)
        self._teacher_classes = self.known_classes.copy()

    def train_on_buffer(self) -> None:
        fit_input_scaling(self.teacher, torch_model(self.teacher).encode(self.buffer.x))
        seen = np.zeros_like(self._teacher_classes)
        seen[self.buffer.y] = True
        self._distilled_classes = torch.from_numpy(np.flatnonzero(seen & self._teacher_classes))
        super().train_on_buffer()

    def training_loss(self, x: Tensor, y: Tensor) -> Tensor:
        logits = self.model(x)
        with torch.no_grad():
            old = self.teacher(x)
        distilled = distillation(logits[:, self._distilled_classes], old[:, self._distilled_classes], self.temperature)
        return self.loss(logits, y) + self.distillation_weight * distilled


def distillation(student: Tensor, old: Tensor, temperature: float) -> Tensor:
    """Return the mean cross-entropy of two sets of outputs at a temperature; 0 with fewer than two classes.

    >>> outputs = torch.tensor([[0.0, 2.0]])
    >>> round(float(distillation(outputs, outputs, temperature=2.0)), 4)  # the entropy of (1, e) / (1 + e)
    0.5822
    """
    if student.shape[1] < 2:
        return student.new_zeros(())
    return -(softmax(old / temperature, dim=1) * log_softmax(student / temperature, dim=1)).sum(1).mean()
