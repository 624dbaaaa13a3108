"""IRM-T: invariant risk minimization over windows of time.

Arjovsky et al., "Invariant Risk Minimization", 2019 (IRMv1); as a method over windows of time: Yao et al.,
"Wild-Time", NeurIPS 2022.

The penalty is the product of two independent halves of a group, which is unbiased. For the first `anneal_updates`
updates it has weight 1, then `penalty_weight`, and the optimizer starts again at the change, as in DomainBed and WILDS;
Wild-Time's code has this option but never advances its counter. The count starts again with a fresh start, not with a
warm one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from torch import Tensor

from driftline.learners.domain_generalization.windows import GroupedBatch, grouped_batches, sliding_windows
from driftline.learners.settings import Count
from driftline.learners.supervised.base import Start, SupervisedLearner
from driftline.registry import register
from driftline.seeds import Seed
from driftline.tasks import Task
from driftline.training.fit import optimizer_step
from driftline.training.objectives import IRM
from driftline.types import Inputs, Network, Samples, Targets


@register("method", "irm-t")
@dataclass
class IRMT(SupervisedLearner):
    """IRM-T: mean over windows of risk + penalty_weight * IRMv1's gradient penalty."""

    start: Start = "fresh"  # start of each training: the initial weights, or the previous ones
    groups: Count = 10  # windows in a mini-batch
    window: Count = 5  # periods in a window
    penalty_weight: float = 1.0  # weight of IRMv1's gradient penalty
    anneal_updates: int = 0  # updates before the penalty has its full weight

    requires = "network"
    cost_free = frozenset({"penalty_weight"})

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        self.n_updates = 0

    def learn(self, x: Inputs, y: Targets) -> None:
        self.learn_cumulative(x, y)

    def fit_round(self, x: Inputs, y: np.ndarray, updates: int, batch: int, seed: Seed) -> None:
        if self.training_rounds == 0:
            self.n_updates = 0
        windows = sliding_windows([len(labels) for _, labels in self.history], self.window)
        batches = grouped_batches(self.model, x, y, windows, self.groups, updates, batch, seed, self.augment)
        for grouped in batches:
            if self.n_updates == self.anneal_updates > 0:
                self.new_optimizer()
            optimizer_step(self.optim, self.group_loss(grouped))
            self.n_updates += 1

    def group_loss(self, batch: GroupedBatch) -> Tensor:
        weight = self.penalty_weight if self.n_updates >= self.anneal_updates else 1.0
        return IRM(weight).loss(self._task, batch.groups(self.model(batch.x)))
