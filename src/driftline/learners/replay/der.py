"""DER and DER++: dark experience replay, of stored outputs and, in DER++, of stored labels.

Buzzega et al., "Dark Experience for General Continual Learning: a Strong, Simple Baseline", NeurIPS 2020. (Not the DER
of dynamically expandable representations.) With h the raw outputs, B the mini-batch, and B', B'' two draws of `batch`
samples from a reservoir, or of all while it has fewer:

    DER     loss(B) + alpha * mean over B' of (h(x) - z)^2
    DER++   DER + beta * loss(B'')

z are the outputs that a sample had in training mode when it entered the buffer, before the step on it; they are never
computed again. Each mini-batch is offered to the reservoir after its step. So replay begins with the second update of
the first training round, and a sample that is drawn several times may be stored several times, with different outputs,
as in the authors' code. Inputs are stored without augmentation, and are not augmented when they are replayed. B, B' and
B'' pass one after another, so that each has its own batch-norm statistics.

The paper prints the squared distance summed over outputs; its code, and this, takes the mean over outputs too, for
which alpha is. `alpha` and `beta` are the authors' for Split CIFAR-10 and a buffer of 500.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from torch import Tensor
from torch.nn.functional import mse_loss

from driftline.device import to_numpy
from driftline.learners.buffers import ReservoirBuffer
from driftline.learners.online.base import check_classification
from driftline.learners.settings import AtLeastTwo, NonNegative
from driftline.learners.supervised.base import SupervisedLearner
from driftline.registry import register
from driftline.seeds import Seed
from driftline.tasks import Task
from driftline.training.fit import optimizer_step
from driftline.training.torch_model import torch_model
from driftline.types import Inputs, Network, Reveal, Samples, Targets, take_rows


@register("method", "der")
@dataclass
class DER(SupervisedLearner):
    """DER: fine-tuning with replay of stored outputs and, in DER++, of stored labels."""

    capacity: AtLeastTwo = 500  # size of the replay buffer
    alpha: NonNegative = 0.3  # weight of the distance from stored outputs
    beta: NonNegative = 0.0  # weight of the loss on stored labels

    requires = "network"
    min_reveal = Reveal.ERRORS
    transient = frozenset({"_round"})
    cost_free = frozenset({"alpha"})

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
        outputs = self.model(x)
        loss = self.loss(outputs, torch_model(self.model).targets(labels[rows]))
        if len(self.buffer):
            loss = loss + self.replay_loss()
        optimizer_step(self.optim, loss)
        self.buffer.add(take_rows(inputs, rows), np.column_stack([labels[rows], to_numpy(outputs)]))

    def replay_loss(self) -> Tensor:
        """Return the loss on stored outputs and labels."""
        x, _, stored = self.replayed()
        loss = self.alpha * mse_loss(self.model(x), stored)
        if self.beta:
            x, y, _ = self.replayed()
            loss = loss + self.beta * self.batch_loss(x, y)
        return loss

    def replayed(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return inputs, labels and stored outputs of a draw from the buffer."""
        x, stored = self.buffer.draw(self.batch)
        inputs, labels = self.to_tensors(x, stored[:, 0].astype(int))
        return inputs, labels, torch_model(self.model).targets(stored[:, 1:].astype(np.float32))


register("method", "der++")(partial(DER, alpha=0.2, beta=0.5))
