"""The common part of methods that train on what they are shown."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from driftline.learners.base import Learner
from driftline.registry import register
from driftline.tasks import Task, mean_loss
from driftline.training.model import as_model
from driftline.types import Samples

if TYPE_CHECKING:
    from torch import Tensor


@register("pretraining", "supervised")
@dataclass
class Trained(Learner):
    """A learner with an optimiser. The defaults are Wild-Time's for Yearbook under Eval-Stream.

    With a scikit-learn estimator as the model these settings mean nothing, and setting one is refused.
    """

    lr: float = 1e-3
    updates: int = 300
    batch: int = 32
    weight_decay: float = 0.0
    optimizer: Literal["adam", "sgd"] = "adam"

    def prepare(self, model: Any, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        self.lessons = 0
        if as_model(model).is_network:
            self._initial = copy.deepcopy(model.state_dict())
            self.new_optimizer()

    def new_optimizer(self) -> None:
        """Forget what the optimiser has gathered about earlier gradients."""
        from driftline.training.fit import new_optimizer

        self.descent = new_optimizer(self.optimizer, self.model, lr=self.lr, weight_decay=self.weight_decay)

    def loss(self, x: Tensor, y: Tensor) -> Tensor:
        """What an update makes smaller: the mean loss on a mini-batch, and whatever a method adds to it."""
        from driftline.training.torch_model import torch_model

        return mean_loss(self._task, torch_model(self.model).training_outputs(x, y), y)

    def update(self, x: Tensor, y: Tensor) -> None:
        """One step of training on a mini-batch."""
        from driftline.training.fit import descend_on

        descend_on(self.descent, self.model, self.loss, x, y)

    def train(self, x: Any, y: Any) -> None:
        """Train on these samples, from the present weights and optimiser state."""
        targets = self._task.targets(y)
        if not as_model(self.model).is_network:
            self.model.partial_fit(x, targets)
            return
        from driftline.training.fit import fit

        seed = self.seed.child("lesson", self.lessons)
        fit(self.model, x, targets, self.update, updates=self.updates, batch=self.batch, seed=seed)
        self.lessons += 1

    def train_afresh(self, x: Any, y: Any) -> None:
        """Train on these samples from the initial weights, as if there had been no lesson before."""
        if not as_model(self.model).is_network:
            self.model.fit(x, self._task.targets(y))
            return
        self.model.load_state_dict(self._initial)
        self.new_optimizer()
        self.lessons = 0
        self.train(x, y)
