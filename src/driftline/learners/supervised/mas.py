"""MAS: memory aware synapses, a quadratic penalty weighted by how much the outputs depend on each weight.

Aljundi et al., "Memory Aware Synapses: Learning What (Not) to Forget", ECCV 2018. With h the raw outputs,

    loss(theta) + weight * sum_i importance_i (theta_i - anchor_i)^2
    after each round:   importance_i <- importance_i + mean over x of |d ||h(x)||^2 / d theta_i|,   anchor <- theta

The modulus is taken sample by sample, in evaluation mode, over the samples of the training round; labels play no part
in it. The weight of 1 is the paper's.

Departs from the authors' code, which takes the modulus of the sum over batches of 200 samples, where gradients of
opposite signs cancel, and whose optimizer decays weights towards 0 by their sign.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from driftline.learners.settings import NonNegative
from driftline.learners.supervised.base import SupervisedLearner
from driftline.registry import register
from driftline.tasks import Task
from driftline.training.per_sample_gradients import sum_over_samples
from driftline.training.regularization import flatten, quadratic_penalty, trainable_parameters
from driftline.training.torch_model import torch_model
from driftline.types import Inputs, Network, Samples, Targets


@register("method", "mas")
@dataclass
class MAS(SupervisedLearner):
    """MAS: fine-tuning with a quadratic penalty weighted by the sensitivity of the outputs."""

    penalty_weight: NonNegative = 1.0  # weight of the penalty

    requires = "network"
    cost_free = frozenset({"penalty_weight"})

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        self.anchor = self._theta()
        self.importance = torch.zeros_like(self.anchor)

    def loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        loss = super().loss(outputs, y)
        if not self.training_rounds:
            return loss
        weights = flatten(trainable_parameters(self.model))
        return loss + self.penalty_weight * quadratic_penalty(weights, self.anchor, self.importance)

    def learn(self, x: Inputs, y: Targets) -> None:
        self.train(x, y)
        adapter = torch_model(self.model)
        inputs, targets = adapter.encode(x), adapter.targets(self._task.targets(y))
        rows = torch.arange(len(targets))
        total = sum_over_samples(self.model, inputs, targets, rows, squared_length, torch.abs)
        self.importance = self.importance + total / len(targets)
        self.anchor = self._theta()

    @torch.no_grad()
    def _theta(self) -> Tensor:
        return flatten(trainable_parameters(self.model))


def squared_length(outputs: Tensor, _: Tensor) -> Tensor:
    """Return the sum of the squared lengths of raw outputs."""
    return outputs.square().sum()
