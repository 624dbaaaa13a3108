"""Base class for contrastive learners: features are trained without labels first, then the network with labels."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from torch import Generator, Tensor, nn

from driftline.learners.pooled import Pooled
from driftline.tasks import Task
from driftline.training.contrast import projection
from driftline.training.encode import last_linear, only_features
from driftline.training.fit import descend, fit
from driftline.training.views import Views, refuse_texts
from driftline.types import Samples


@dataclass
class Contrastive(Pooled):
    """A learner that spends a share of its updates on a contrastive loss, and the rest on labels.

    Where a protocol evaluates during the stream, it trains on the latest period alone; otherwise on all of them at
    the end. One optimizer serves both stages and the head, as in Wild-Time.
    """

    share: float = 0.9  # of the updates that use no labels
    area: float = 0.08  # the smallest share of an image that a view shows
    start: Literal["fresh", "warm"] = "warm"

    requires = "network"

    transient = frozenset({"_initial_head"})

    def prepare(self, model: Any, task: Task, upstream: Samples | None = None) -> None:
        self.must_suit(model)
        self.head = self.new_head(last_linear(model).in_features)
        self._initial_head = copy.deepcopy(self.head.state_dict())
        super().prepare(model, task, upstream)

    def must_suit(self, model: Any) -> None:
        super().must_suit(model)
        refuse_texts(model)

    def new_head(self, features: int) -> nn.Module:
        """Return the projection head, which predictions do not use."""
        return projection(features, self.seed.child("head"))

    def new_optimizer(self) -> None:
        super().new_optimizer()
        self.descent.add_param_group({"params": list(self.head.parameters())})

    def contrast(self, a: Tensor, b: Tensor) -> Tensor:
        """Return the contrastive loss of the features of two views."""
        raise NotImplementedError

    def compare(self, draws: Generator, x: Tensor, y: Tensor) -> None:
        """Make one contrastive update; the classifier layer is not trained."""
        a, b = Views(area=self.area).pair(x, draws)
        descend(self.descent, self.contrast(only_features(self.model, a), only_features(self.model, b)))

    def learn(self, x: Any, y: Any) -> None:
        if self.waits:
            super().learn(x, y)
        else:
            (self.train if self.start == "warm" else self.train_afresh)(x, y)

    def train(self, x: Any, y: Any) -> None:
        seed, targets = self.seed.child("lesson", self.lessons), self._task.targets(y)
        first = round(self.share * self.updates)
        compare = partial(self.compare, seed.child("views").torch())
        fit(self.model, x, targets, compare, updates=first, batch=self.batch, seed=seed.child("contrast"))
        fit(self.model, x, targets, self.update, updates=self.updates - first, batch=self.batch, seed=seed)
        self.lessons += 1

    def train_afresh(self, x: Any, y: Any) -> None:
        self.head.load_state_dict(self._initial_head)
        super().train_afresh(x, y)
