"""SimCLR: contrastive learning with in-batch negatives.

Chen et al., "A Simple Framework for Contrastive Learning of Visual Representations", ICML 2020; in two stages per
round as in Wild-Time: 2700 updates without labels then 300 with them (Eval-Stream: 270 then 30), projection head
32-32-128 for the Yearbook network (features-features-128 for any other).

Departs from Wild-Time's code, which never switches its network back after the first period, so that later periods
contrast class logits: here every period contrasts features. NT-Xent needs negatives, and mini-batches are drawn with
replacement: a sample drawn twice is its own negative, which matters for rounds not much larger than a mini-batch.
The views are those of `driftline.training.contrastive_views`. The projection head's compute is not counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from driftline.learners.self_supervised.contrastive_stage import ContrastiveStage
from driftline.learners.supervised.base import Start, SupervisedLearner
from driftline.registry import register
from driftline.seeds import Seed
from driftline.tasks import Task
from driftline.training.cached_features import classifier_layer
from driftline.training.contrastive import nt_xent, projection_head
from driftline.training.contrastive_views import check_numeric_inputs
from driftline.types import Inputs, Network, Samples, Targets


@register("method", "simclr")
@dataclass
class SimCLR(SupervisedLearner):
    """SimCLR: contrastive features with in-batch negatives, then training on labels.

    Where a protocol evaluates during the stream, it trains on the latest period alone; otherwise on all at the end.
    """

    unlabeled_fraction: float = 0.9  # share of the updates that use no labels
    min_crop_area: float = 0.08  # minimum share of an image that a view shows
    start: Start = "warm"  # start of each training: the initial weights, or the previous ones
    temperature: float = 0.5  # temperature of the softmax

    requires = "network"
    cost_free = frozenset({"temperature"})

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        self.check_model(model)
        head = projection_head(classifier_layer(model).in_features, self.seed.child("head"))
        loss = partial(nt_xent, temperature=self.temperature)
        self.contrastive = ContrastiveStage(head, loss, self.min_crop_area)
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
