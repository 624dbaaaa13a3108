"""The common part of methods that train on what they are shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from driftline.errors import UserError
from driftline.learners.base import Learner
from driftline.models.estimator import Estimator
from driftline.tasks import Task
from driftline.types import Samples

if TYPE_CHECKING:
    from torch import Tensor


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
        self.new_optimizer()

    def new_optimizer(self) -> None:
        """Forget what the optimiser has gathered about earlier gradients."""
        if isinstance(self.model, Estimator):
            return
        import torch

        make = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}[self.optimizer]
        self.descent = make(self.model.parameters(), lr=self.lr, weight_decay=self.weight_decay)

    def loss(self, x: Tensor, y: Tensor) -> Tensor:
        """What an update makes smaller: the mean loss on a mini-batch, and whatever a method adds to it."""
        return self._task.loss(self.model(x), y).mean()

    def update(self, x: Tensor, y: Tensor) -> None:
        """One step of training on a mini-batch."""
        from driftline.training.fit import descend

        descend(self.descent, self.loss(x, y))

    def train(self, x: Any, y: Any) -> None:
        """Train the network on these samples, from its present weights and optimiser state."""
        from driftline.training.fit import fit

        seed = self.seed.child("lesson", self.lessons)
        fit(self.model, x, y, self.update, updates=self.updates, batch=self.batch, seed=seed)
        self.lessons += 1


def must_continue(model: Estimator, method: str) -> None:
    """Refuse an estimator that can only start again."""
    if not model.can_continue:
        raise UserError(f"{method} goes on training, and {model} can only be fitted afresh: use erm, or naive-bayes")
