"""Base class for contrastive learners: features are trained without labels first, then the network with labels."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import partial
from typing import Literal

from torch import Generator, Tensor, nn

from driftline.learners.supervised.base import CumulativeLearner
from driftline.tasks import Task
from driftline.training.cached_features import classifier_layer, features_with_frozen_head
from driftline.training.contrastive import projection_head
from driftline.training.contrastive_views import SimCLRAugmentation, check_numeric_inputs
from driftline.training.fit import fit, optimizer_step
from driftline.types import Inputs, Network, Samples, Targets


@dataclass
class ContrastiveLearner(CumulativeLearner):
    """A learner that spends a share of its updates on a contrastive loss, and the rest on labels.

    Where a protocol evaluates during the stream, it trains on the latest period alone; otherwise on all of them at
    the end. One optimizer serves both stages and the head, as in Wild-Time.
    """

    unlabeled_fraction: float = 0.9  # share of the updates that use no labels
    min_crop_area: float = 0.08  # the smallest share of an image that a view shows
    start: Literal["fresh", "warm"] = "warm"

    requires = "network"

    transient = frozenset({"_initial_projection_head"})

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        self.check_model(model)
        self.projection_head = self.new_projection_head(classifier_layer(model).in_features)
        self._initial_projection_head = copy.deepcopy(self.projection_head.state_dict())
        super().prepare(model, task, upstream)

    def check_model(self, model: Network) -> None:
        super().check_model(model)
        check_numeric_inputs(model)

    def new_projection_head(self, features: int) -> nn.Module:
        """Return the projection head, which predictions do not use."""
        return projection_head(features, self.seed.child("head"))

    def new_optimizer(self) -> None:
        super().new_optimizer()
        self.optim.add_param_group({"params": list(self.projection_head.parameters())})

    def contrastive_loss(self, a: Tensor, b: Tensor) -> Tensor:
        """Return the contrastive loss of the features of two views."""
        raise NotImplementedError

    def contrastive_update(self, rng: Generator, x: Tensor, y: Tensor) -> None:
        """Make one contrastive update; the classifier layer is not trained."""
        a, b = SimCLRAugmentation(min_crop_area=self.min_crop_area).two_views(x, rng)
        optimizer_step(
            self.optim,
            self.contrastive_loss(features_with_frozen_head(self.model, a), features_with_frozen_head(self.model, b)),
        )

    def learn(self, x: Inputs, y: Targets) -> None:
        if self.evaluated_at_end:
            super().learn(x, y)
        else:
            (self.train if self.start == "warm" else self.train_from_scratch)(x, y)

    def train(self, x: Inputs, y: Targets) -> None:
        seed, targets = self.seed.child("lesson", self.training_rounds), self._task.targets(y)
        updates, batch = self.round_size(len(targets))
        first = round(self.unlabeled_fraction * updates)
        compare = partial(self.contrastive_update, seed.child("views").torch())
        fit(self.model, x, targets, compare, updates=first, batch=batch, seed=seed.child("contrast"))
        rest, augment = updates - first, self.augment
        fit(self.model, x, targets, self.update, updates=rest, batch=batch, seed=seed, augment=augment)
        self.end_round()

    def train_from_scratch(self, x: Inputs, y: Targets) -> None:
        self.projection_head.load_state_dict(self._initial_projection_head)
        super().train_from_scratch(x, y)
