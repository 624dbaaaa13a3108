"""GroupDRO-T: group distributionally robust optimization over windows of time.

Sagawa et al., "Distributionally Robust Neural Networks for Group Shifts", ICLR 2020, algorithm 1; as a method over
windows of time: Yao et al., "Wild-Time", NeurIPS 2022.

All windows have a weight, each update draws some of them, and only their weights rise before the common
normalization. The paper draws one group per update and steps by q_g times its gradient; here several are drawn, and
the sum of q_g loss_g over them is multiplied by m / k (m windows, k drawn). That is the paper's step but for a
constant factor, and an unbiased estimate of the sum over all windows, so `lr` means what it means elsewhere.
The weights of those drawn are not made to sum to 1: see `objectives.weighted_group_loss`.

Wild-Time's code knows as many weights as there are groups in a mini-batch (10) and silently drops the examples of
all later windows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from driftline.learners.domain_generalization.windows import GroupedBatch, grouped_batches, sliding_windows
from driftline.learners.settings import Count
from driftline.learners.supervised.base import Start, SupervisedLearner
from driftline.registry import register
from driftline.seeds import Seed
from driftline.tasks import Task
from driftline.training.fit import optimizer_step
from driftline.training.objectives import risks, update_group_weights, weighted_group_loss
from driftline.types import Inputs, Network, Samples, Targets


@register("method", "groupdro-t")
@dataclass
class GroupDROT(SupervisedLearner):
    """GroupDRO-T: sum of q_g * loss_g, where q_g grows as exp(eta * loss_g).

    A fresh start begins with equal weights. A warm start keeps them: a new window enters with the mean weight.
    """

    start: Start = "fresh"  # start of each training: the initial weights, or the previous ones
    groups: Count = 10  # windows in a mini-batch
    window: Count = 5  # periods in a window
    eta: float = 0.01  # step size of the weights of windows

    requires = "network"

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        self.q = torch.zeros(0, dtype=torch.float64)

    def learn(self, x: Inputs, y: Targets) -> None:
        self.learn_cumulative(x, y)

    def fit_round(self, x: Inputs, y: np.ndarray, updates: int, batch: int, seed: Seed) -> None:
        windows = sliding_windows([len(labels) for _, labels in self.history], self.window)
        n = len(windows)
        known = self.q if self.training_rounds else self.q[:0]
        self.q = torch.cat([known * (len(known) / n), torch.full((n - len(known),), 1 / n, dtype=torch.float64)])
        batches = grouped_batches(self.model, x, y, windows, self.groups, updates, batch, seed, self.augment)
        for grouped in batches:
            optimizer_step(self.optim, self.group_loss(grouped))

    def group_loss(self, batch: GroupedBatch) -> Tensor:
        losses = risks(self._task, batch.groups(self.model(batch.x)))
        self.q = update_group_weights(self.q, losses, batch.windows, self.eta)
        return weighted_group_loss(self.q, losses, batch.windows)
