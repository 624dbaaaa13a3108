"""Base of methods that train without labels first: a contrastive loss on two views of each image, then labels."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Generator, Tensor, nn

from driftline.learners.supervised.base import Start, SupervisedLearner
from driftline.seeds import Seed
from driftline.tasks import Task
from driftline.training.cached_features import features_with_frozen_head
from driftline.training.contrastive_views import SimCLRAugmentation, check_numeric_inputs
from driftline.training.fit import fit, optimizer_step
from driftline.types import Inputs, Network, Samples, State, Targets

PairLoss = Callable[[Tensor, Tensor], Tensor]
"""A loss of the projected features of two views."""


class ContrastiveStage:
    """A projection head, which predictions do not use, and how it is trained together with the network.

    One optimizer serves both stages and the head, as in Wild-Time.
    """

    def __init__(self, head: nn.Module, loss: PairLoss, min_crop_area: float) -> None:
        self.head, self.loss, self.min_crop_area = head, loss, min_crop_area
        self._initial = copy.deepcopy(head.state_dict())

    def reset(self) -> None:
        """Restore the initial weights of the head."""
        self.head.load_state_dict(self._initial)

    def add_to(self, optimizer: torch.optim.Optimizer) -> None:
        """Let an optimizer train the head too."""
        optimizer.add_param_group({"params": list(self.head.parameters())})

    def fit(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        x: Inputs,
        y: Targets,
        *,
        updates: int,
        batch: int,
        seed: Seed,
    ) -> None:
        """Make contrastive updates; the classifier layer is not trained, and labels are not used."""
        update = partial(self._update, model, optimizer, seed.child("views").torch())
        fit(model, x, y, update, updates=updates, batch=batch, seed=seed.child("contrast"))

    def _update(self, model: nn.Module, optimizer: torch.optim.Optimizer, rng: Generator, x: Tensor, _: Tensor) -> None:
        views = SimCLRAugmentation(min_crop_area=self.min_crop_area).two_views(x, rng)
        a, b = (self.head(features_with_frozen_head(model, view)) for view in views)
        optimizer_step(optimizer, self.loss(a, b))

    def state(self) -> State:
        """Return everything a checkpoint needs."""
        return {"head": dict(self.head.state_dict())}

    def restore(self, saved: State) -> None:
        """Restore a checkpoint."""
        self.head.load_state_dict(saved["head"])


@dataclass
class ContrastiveLearner(SupervisedLearner):
    """A learner whose training rounds begin with contrastive updates.

    Where a protocol evaluates during the stream, it trains on the latest period alone; otherwise on all at the end.
    """

    unlabeled_fraction: float = 0.9  # share of the updates that use no labels
    min_crop_area: float = 0.08  # the smallest share of an image that a view shows
    start: Start = "warm"  # start of each training: the initial weights, or the previous ones

    requires = "network"
    cost_free = frozenset({"temperature"})

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        self.check_model(model)
        self.contrastive = ContrastiveStage(self.new_head(model), self.pair_loss, self.min_crop_area)
        super().prepare(model, task, upstream)

    def new_head(self, model: Network) -> nn.Module:
        """Return the projection head."""
        raise NotImplementedError

    def pair_loss(self, a: Tensor, b: Tensor) -> Tensor:
        """Return the loss of two views' projections."""
        raise NotImplementedError

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
