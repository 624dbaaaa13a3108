"""SwAV: swapped prediction of cluster assignments between views.

Caron et al., "Unsupervised Learning of Visual Features by Contrasting Cluster Assignments", NeurIPS 2020; in two
stages per training round as in Wild-Time, with its 32 prototypes and projection head (with batch norm) 32-32-128.

Departs from Caron et al. in that there are two views and no smaller crops, no queue of earlier features, and the
prototypes learn from the first update; from Wild-Time's code in that every period learns from features, where it
goes on with class logits after the first. The compute of head and prototypes is not counted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from driftline.device import to_device
from driftline.learners.self_supervised.contrastive_stage import ContrastiveStage
from driftline.learners.supervised.base import Start, SupervisedLearner
from driftline.registry import register
from driftline.seeds import Seed
from driftline.tasks import Task
from driftline.training.cached_features import classifier_layer
from driftline.training.contrastive import PROJECTION_WIDTH, projection_head, swav_loss
from driftline.training.contrastive_views import check_numeric_inputs
from driftline.types import Inputs, Network, Samples, Targets


@register("method", "swav")
@dataclass
class SwaV(SupervisedLearner):
    """SwAV: swapped prediction of balanced cluster assignments, then training on labels.

    Where a protocol evaluates during the stream, it trains on the latest period alone; otherwise on all at the end.
    """

    unlabeled_fraction: float = 0.9  # share of the updates that use no labels
    min_crop_area: float = 0.08  # minimum share of an image that a view shows
    start: Start = "warm"  # start of each training: the initial weights, or the previous ones
    temperature: float = 0.1  # temperature of the softmax
    prototypes: int = 32  # number of clusters
    epsilon: float = 0.05  # softness of assignments
    iterations: int = 3  # iterations of the Sinkhorn-Knopp algorithm

    requires = "network"
    cost_free = frozenset({"temperature"})

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        self.check_model(model)
        head = projection_head(classifier_layer(model).in_features, self.seed.child("head"), batch_norm=True)
        start = torch.randn(self.prototypes, PROJECTION_WIDTH, generator=self.seed.child("prototypes").torch())
        head.register_parameter("prototypes", nn.Parameter(to_device(normalize(start, dim=1))))
        self.contrastive = ContrastiveStage(head, self.prototype_loss, self.min_crop_area)
        super().prepare(model, task, upstream)

    def check_model(self, model: Network) -> None:
        super().check_model(model)
        check_numeric_inputs(model)

    def new_optimizer(self) -> None:
        super().new_optimizer()
        self.contrastive.add_to(self.optim)

    def learn(self, x: Inputs, y: Targets) -> None:
        if self.evaluated_at_end:
            self.learn_cumulative(x, y)
        else:
            (self.train if self.start == "warm" else self.train_from_scratch)(x, y)

    def train_from_scratch(self, x: Inputs, y: Targets) -> None:
        self.contrastive.reset()
        super().train_from_scratch(x, y)

    def fit_round(self, x: Inputs, y: np.ndarray, updates: int, batch: int, seed: Seed) -> None:
        first = round(self.unlabeled_fraction * updates)
        self.contrastive.fit(self.model, self.optim, x, y, updates=first, batch=batch, seed=seed)
        super().fit_round(x, y, updates - first, batch, seed)

    def prototype_loss(self, a: Tensor, b: Tensor) -> Tensor:
        """Return the loss of two views' projections; the prototypes are normalized first."""
        c = self.contrastive.head.get_parameter("prototypes")
        with torch.no_grad():
            c.copy_(normalize(c, dim=1))
        softness = {"temperature": self.temperature, "epsilon": self.epsilon}
        return swav_loss(a, b, c, iterations=self.iterations, **softness)
