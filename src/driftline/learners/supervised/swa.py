"""SWA: stochastic weight averaging over the last part of training.

Izmailov et al., "Averaging Weights Leads to Wider Optima and Better Generalization", UAI 2018. The average is taken
within each round, over the weights after every `average_every`-th update, counted back from the last, once the share
`start_fraction` of the updates is done. Batch norm statistics are then recomputed for the averaged weights, in one pass
over the training data in random order (in order of time a batch would show too little variance). With `start=warm` the
next round goes on from the last weights, to which the optimizer's state belongs, not from their average. Departs from
the paper in that the learning rate is constant throughout. Wild-Time's code averages once, after training, which is
plain ERM (Eval-Fix) or an average over periods (Eval-Stream), and leaves batch norm as it was.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import update_bn

from driftline.device import to_double
from driftline.learners.settings import BelowOne, Count
from driftline.learners.supervised.base import Start, SupervisedLearner
from driftline.models.preprocessing import to_float_batch
from driftline.registry import register
from driftline.seeds import Seed
from driftline.tasks import Task
from driftline.training.modes import training
from driftline.training.torch_model import torch_model
from driftline.types import Inputs, Network, Samples, State, Targets


@register("method", "swa")
@dataclass
class SWA(SupervisedLearner):
    """SWA: training on all labels so far, with averaged weights for prediction."""

    start: Start = "fresh"  # start of each training: the initial weights, or the previous ones
    start_fraction: BelowOne = 0.75  # share of updates before averaging starts
    average_every: Count = 10  # updates between averaged weights

    requires = "network"

    transient = frozenset({"_n_averaged", "_n_updates", "_total_updates", "_weight_sums"})

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        self.last_weights: State = {}

    def learn(self, x: Inputs, y: Targets) -> None:
        self.learn_cumulative(x, y)

    def train(self, x: Inputs, y: Targets) -> None:
        if self.training_rounds:
            self.model.load_state_dict(self.last_weights)
        self._n_updates, self._n_averaged = 0, 0
        self._total_updates, _ = self.round_size(len(y))
        self._weight_sums = [0 * to_double(p.detach()) for p in self.model.parameters()]
        super().train(x, y)
        self.last_weights = copy.deepcopy(self.model.state_dict()) if self.start == "warm" else {}
        if self._n_averaged:
            for p, total in zip(self.model.parameters(), self._weight_sums, strict=True):
                p.data.copy_(total / self._n_averaged)
            recompute_batch_norm(self.model, x, self.seed.child("lesson", self.training_rounds - 1, "refresh"))

    def update(self, x: Tensor, y: Tensor) -> None:
        super().update(x, y)
        self._n_updates += 1
        if (
            self._n_updates > self.start_fraction * self._total_updates
            and (self._total_updates - self._n_updates) % self.average_every == 0
        ):
            self._n_averaged += 1
            for p, total in zip(self.model.parameters(), self._weight_sums, strict=True):
                total.add_(to_double(p.detach()))


def recompute_batch_norm(model: nn.Module, x: Inputs, seed: Seed, batch: int = 128) -> None:
    """Recompute batch-norm statistics over these inputs, in batches of about the same size."""
    inputs = torch_model(model).encode(x)
    order = torch.randperm(len(inputs), generator=seed.child("order").torch())
    order = order.repeat(2) if len(order) == 1 else order  # batch norm needs two
    batches = order.tensor_split(-(-len(order) // batch))
    with training(model, seed.child("noise")):
        update_bn((to_float_batch(inputs[rows]) for rows in batches), model)
