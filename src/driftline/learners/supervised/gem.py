"""GEM: gradient episodic memory.

Lopez-Paz and Ranzato, "Gradient Episodic Memory for Continual Learning", NIPS 2017. With g the gradient on the batch
and g_j the gradient on the whole memory of an earlier training round j, step along the vector nearest to g whose
product with no g_j is negative:

    min_v 1/2 |G'v + g|^2  with  v >= margin,   then  g + G'v,   where G has a row g_j for each round

If no product of g is negative, g is kept as it is. The memory of a round is its last `capacity` samples; the present
round is no constraint. Memories pass in training mode, one after another. The margin, which strengthens earlier rounds,
is a lower bound of v as in the authors' code; the paper adds it to the solution for margin 0. Both numbers are theirs.

Departs from the authors' code, which adds .001 to the diagonal of GG' and goes on filling a memory where the one
before ended. Their tasks are few; here every delivery of labels is a training round, and if more than `max_memories`
were kept, the two oldest are joined to one of their latest `capacity` samples.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from scipy.optimize import nnls
from torch import Tensor

from driftline.device import to_device, to_double, to_numpy
from driftline.learners.settings import Count, NonNegative
from driftline.learners.supervised.base import SupervisedLearner
from driftline.registry import register
from driftline.tasks import Task
from driftline.training.regularization import gradient, step_with_gradient, trainable_parameters
from driftline.types import Inputs, Network, Samples, Targets, concat_rows, take_rows


@register("method", "gem")
@dataclass
class GEM(SupervisedLearner):
    """GEM: fine-tuning along the gradient projected so that the loss on no earlier training round rises."""

    capacity: Count = 256  # size of the memory of each training round
    margin: NonNegative = 0.5  # lower bound of the weight of each memory in a projection
    max_memories: Count = 20  # maximum number of memories; older ones are merged

    requires = "network"
    cost_free = frozenset({"margin"})

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        self.memories: list[tuple[Inputs, Targets]] = []

    def update(self, x: Tensor, y: Tensor) -> None:
        if not self.memories:
            super().update(x, y)
            return
        weights = trainable_parameters(self.model)
        earlier = [self.memory_gradient(*memory) for memory in self.memories]
        grad = gradient(self.batch_loss(x, y), weights)
        step_with_gradient(self.optim, weights, project_onto_cone(grad, torch.stack(earlier), self.margin))

    def learn(self, x: Inputs, y: Targets) -> None:
        self.train(x, y)
        self.memories.append(_latest(x, y, self.capacity))
        if len(self.memories) > self.max_memories:
            (x, y), (later_x, later_y), *others = self.memories
            joined = _latest(concat_rows([x, later_x]), concat_rows([y, later_y]), self.capacity)
            self.memories = [joined, *others]


def _latest(x: Inputs, y: Targets, n: int) -> tuple[Inputs, Targets]:
    rows = np.arange(len(y))[-n:]
    return take_rows(x, rows), take_rows(y, rows)


def project_onto_cone(grad: Tensor, earlier: Tensor, margin: float) -> Tensor:
    """Return a gradient, changed as little as possible if it conflicts with a row of `earlier`.

    >>> earlier = torch.tensor([[1.0, 0.0], [0.6, 0.8]])
    >>> project_onto_cone(torch.tensor([-1.0, 0.5]), earlier, margin=0.0)
    tensor([0.0000, 0.5000])
    """
    rows = to_double(earlier)
    products, gram = to_numpy(rows @ to_double(grad)), to_numpy(rows @ rows.T)
    if (products >= 0).all() or not np.isfinite([*products, *gram.flat]).all():  # the latter once training diverged
        return grad
    v = margin + dual_weights(gram, products, margin)
    return grad + to_device(torch.from_numpy(v).to(grad.dtype)) @ earlier


def dual_weights(gram: np.ndarray, products: np.ndarray, margin: float) -> np.ndarray:
    """Return the u >= 0 with the least 1/2 v'Gv + p'v for v = u + margin, as a problem of least squares."""
    values, vectors = np.linalg.eigh(gram)
    kept = values > values.max() * 1e-12  # p is a combination of the rows of G, and so of these vectors
    roots = np.sqrt(values[kept])
    target = -(vectors[:, kept].T @ (products + gram.sum(axis=1) * margin)) / roots
    found: np.ndarray = nnls(roots[:, None] * vectors[:, kept].T, target)[0]
    return found
