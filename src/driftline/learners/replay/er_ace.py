"""ER-ACE: experience replay with an asymmetric cross-entropy.

Caccia et al., "New Insights on Reducing Abrupt Representation Change in Online Continual Learning", ICLR 2022. With B
the mini-batch, C the set of its labels, and B' a draw of `batch` samples from a reservoir, or of all:

    cross-entropy of B over the classes in C alone  +  cross-entropy of B' over all classes

New samples do not push down the classes that are not among them; only replayed samples compare all classes. Each
mini-batch is offered to the reservoir after its step, so that replay begins with the second update. A mini-batch of one
class has a first loss of exactly 0, and only replay trains. B and B' pass one after another, so that each has its own
batch-norm statistics. Inputs are stored without augmentation, and are not augmented when they are replayed.

Departs from the authors' code, which also leaves classes in the first loss whose number is not below that of the
highest class so far: meant as "not seen yet", this presumes that classes arrive in order, and they do not here. Their
network ends in a cosine layer for this method alone; here every method has the same network. Their buffer has a size
per class, this one a total, which is that of DER++.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from torch import Tensor

from driftline.device import to_numpy
from driftline.learners.buffers import ReservoirBuffer
from driftline.learners.online.base import check_classification, known_class_loss
from driftline.learners.settings import AtLeastTwo
from driftline.learners.supervised.base import SupervisedLearner
from driftline.registry import register
from driftline.seeds import Seed
from driftline.tasks import Task
from driftline.training.fit import optimizer_step
from driftline.training.torch_model import torch_model
from driftline.types import Inputs, Network, Reveal, Samples, Targets, take_rows


@register("method", "er-ace")
@dataclass
class ERACE(SupervisedLearner):
    """ER-ACE: new samples compete among their own classes, replayed samples among all."""

    capacity: AtLeastTwo = 500  # size of the replay buffer

    requires = "network"
    min_reveal = Reveal.ERRORS
    transient = frozenset({"_round"})

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        check_classification(self, task)
        self.buffer = ReservoirBuffer(self.capacity, self.seed.child("memory"))

    def learn(self, x: Inputs, y: Targets) -> None:
        self.train(x, y)

    def fit_round(self, x: Inputs, y: np.ndarray, updates: int, batch: int, seed: Seed) -> None:
        self._round = x, y
        super().fit_round(x, np.arange(len(y)), updates, batch, seed)  # a batch has its rows in place of labels
        del self._round

    def update(self, x: Tensor, y: Tensor) -> None:
        rows, (inputs, labels) = to_numpy(y), self._round
        loss = own_class_loss(self.model(x), torch_model(self.model).targets(labels[rows]))
        if len(self.buffer):
            loss = loss + self.batch_loss(*self.to_tensors(*self.buffer.draw(self.batch)))
        optimizer_step(self.optim, loss)
        self.buffer.add(take_rows(inputs, rows), labels[rows])


def own_class_loss(logits: Tensor, y: Tensor) -> Tensor:
    """Return the mean cross-entropy over the classes that occur in y.

    >>> import torch
    >>> own_class_loss(torch.tensor([[2.0, 1.0, 0.0], [0.0, 0.0, 0.0]]), torch.tensor([2, 1]))
    tensor(1.0032)
    """
    known = np.zeros(logits.shape[1], bool)
    known[to_numpy(y)] = True
    return known_class_loss(logits, y, known)
