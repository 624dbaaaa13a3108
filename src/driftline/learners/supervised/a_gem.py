"""A-GEM: averaged gradient episodic memory.

Chaudhry et al., "Efficient Lifelong Learning with A-GEM", ICLR 2019. With g the gradient on the batch and m the
gradient on a batch of the same size from memory, step along

    g                              if <g, m> >= 0
    g - <g, m> / <m, m> * m        otherwise: what would raise the loss on the memory, to first order, is taken out

The memory is a reservoir: a uniform draw from all samples of earlier training rounds. In the first one it is empty.
The paper divides the memory among tasks; without task boundaries a reservoir is the usual choice, and Wild-Time's.
The batch from memory passes in training mode like any other, so batch-norm statistics follow both.

Departs from Wild-Time's code, which offers one mini-batch per period to the memory instead of all samples, and whose
second release no longer zeroes gradients between steps. The capacity is Wild-Time's.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from driftline.device import to_double
from driftline.learners.buffers import ReservoirBuffer
from driftline.learners.supervised.base import SupervisedLearner
from driftline.registry import register
from driftline.tasks import Task
from driftline.training.regularization import gradient, step_with_gradient, trainable_parameters
from driftline.types import Inputs, Network, Samples, Targets


@register("method", "a-gem")
@dataclass
class AGEM(SupervisedLearner):
    """A-GEM: fine-tuning along the gradient projected so that the loss on a replay buffer does not rise."""

    capacity: int = 1000  # size of the replay buffer

    requires = "network"

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        self.buffer = ReservoirBuffer(self.capacity, self.seed.child("memory"))

    def update(self, x: Tensor, y: Tensor) -> None:
        if not len(self.buffer):
            super().update(x, y)
            return
        weights = trainable_parameters(self.model)
        grad = gradient(self.batch_loss(x, y), weights)
        memory_gradient = self.memory_gradient(*self.buffer.draw(self.batch))
        step_with_gradient(self.optim, weights, project_gradient(grad, memory_gradient))

    def learn(self, x: Inputs, y: Targets) -> None:
        self.train(x, y)
        self.buffer.add(x, y)


def project_gradient(grad: Tensor, memory_gradient: Tensor) -> Tensor:
    """Return a gradient, projected if it conflicts with the gradient of the buffer.

    >>> import torch
    >>> project_gradient(torch.tensor([1.0, 0.0]), torch.tensor([-1.0, 1.0]))
    tensor([0.5000, 0.5000])
    """
    along = (grad @ memory_gradient).item()
    if along >= 0:
        return grad
    length = to_double(memory_gradient).square().sum().item()  # in single precision a tiny gradient squared is zero
    return grad - along / length * memory_gradient
