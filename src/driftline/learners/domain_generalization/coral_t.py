"""CORAL-T: correlation alignment of features across windows of time.

Sun and Saenko, "Deep CORAL: Correlation Alignment for Deep Domain Adaptation", ECCV 2016; as a method over windows of
time: Yao et al., "Wild-Time", NeurIPS 2022.

Features are the input of the last linear layer. Wild-Time's code aligns logits instead, and gives groups of one
example a covariance of the wrong shape; here such groups are left out of the penalty. A network that is one linear
layer has no features to shape: on it this is ERM.
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
from driftline.training.features import check_features, forward_with_features
from driftline.training.fit import optimizer_step
from driftline.training.objectives import coral
from driftline.types import Inputs, Network, Samples, Targets


@register("method", "coral-t")
@dataclass
class CoralT(SupervisedLearner):
    """CORAL-T: mean loss + penalty_weight * distance between the windows' feature means and covariances."""

    start: Start = "fresh"  # start of each training: the initial weights, or the previous ones
    groups: Count = 10  # windows in a mini-batch
    window: Count = 5  # periods in a window
    penalty_weight: float = 0.9  # weight of the distance between windows

    requires = "network"
    cost_free = frozenset({"penalty_weight"})

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        check_features(model)
        super().prepare(model, task, upstream)

    def learn(self, x: Inputs, y: Targets) -> None:
        self.learn_cumulative(x, y)

    def fit_round(self, x: Inputs, y: np.ndarray, updates: int, batch: int, seed: Seed) -> None:
        windows = sliding_windows([len(labels) for _, labels in self.history], self.window)
        batches = grouped_batches(self.model, x, y, windows, self.groups, updates, batch, seed, self.augment)
        for grouped in batches:
            optimizer_step(self.optim, self.group_loss(grouped))

    def group_loss(self, batch: GroupedBatch) -> Tensor:
        outputs, features = forward_with_features(self.model, batch.x)
        return self._task.loss(outputs, batch.y).mean() + self.penalty_weight * coral(batch.split(features))
