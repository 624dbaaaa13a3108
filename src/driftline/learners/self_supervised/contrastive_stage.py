"""The stage of training without labels: a contrastive loss on two views of each image, with a projection head."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial

import torch
from torch import Generator, Tensor, nn

from driftline.seeds import Seed
from driftline.training.cached_features import features_with_frozen_head
from driftline.training.contrastive_views import SimCLRAugmentation
from driftline.training.fit import fit, optimizer_step
from driftline.types import Inputs, State, Targets

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
