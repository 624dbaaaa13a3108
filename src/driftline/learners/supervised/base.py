"""Base class for supervised learners: on the labels of each delivery, or on all labels so far."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from driftline.errors import UserError
from driftline.learners.base import Learner
from driftline.learners.settings import Augmentation, BelowOne, Count, CountOrZero, NonNegative, OptimizerName, Positive
from driftline.registry import register
from driftline.seeds import Seed
from driftline.tasks import Task, mean_loss
from driftline.training.model import as_model
from driftline.types import Inputs, Network, Samples, Targets, concat_rows

if TYPE_CHECKING:
    from torch import Tensor

Start = Literal["fresh", "warm"]


@register("pretraining", "supervised")
@dataclass
class SupervisedLearner(Learner):
    """A learner with an optimizer. The defaults are Wild-Time's for Yearbook under Eval-Stream.

    A method trains in `learn`: on the new labels (`train`, `train_from_scratch`) or on all so far (`learn_cumulative`).

    With a scikit-learn estimator as the model these settings have no effect, and setting one is an error.
    """

    lr: NonNegative = 1e-3  # learning rate
    updates: CountOrZero = 300  # updates per training round
    epochs: Count | None = None  # epochs per training round, in place of `updates`; None: `updates` counts
    batch: Count = 32  # size of a mini-batch
    weight_decay: NonNegative = 0.0  # weight decay
    optimizer: OptimizerName = "adam"  # name of the optimizer
    momentum: BelowOne | None = None  # momentum of the optimizer; None: its default
    lr_decay: Positive = 1.0  # factor of the learning rate after each training round
    augment: Augmentation = "none"  # augmentation of training images

    trains_network: ClassVar[bool] = True
    quick: ClassVar[Mapping[str, str]] = {"updates": "updates"}
    budget_settings: ClassVar[frozenset[str]] = frozenset({"updates", "epochs", "batch"})
    start = "fresh"
    """Where a cumulative method starts each training: from the initial weights ("fresh"), or from the previous ones
    ("warm", as Wild-Time's Eval-Stream does). A cumulative method has it as a setting."""

    transient = frozenset({"_initial_weights"})

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        self.training_rounds = 0
        self.history: list[tuple[Inputs, np.ndarray]] = []
        if as_model(model).is_network:
            self._initial_weights = copy.deepcopy(model.state_dict())
            self.new_optimizer()

    def new_optimizer(self) -> None:
        """Start a new optimizer, without earlier momentum."""
        from driftline.training.optimizers import new_optimizer

        weights = self.model.parameters()
        self.optim = new_optimizer(
            self.optimizer, weights, lr=self.lr, weight_decay=self.weight_decay, momentum=self.momentum
        )

    def loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        """Return the mean loss of a mini-batch from outputs and targets; a method may add to it."""
        return mean_loss(self._task, outputs, y)

    def to_tensors(self, x: Inputs, y: Targets) -> tuple[Tensor, Tensor]:
        """Return samples, for example of a buffer, as `batch_loss` takes them."""
        from driftline.models.preprocessing import to_float_batch
        from driftline.training.torch_model import torch_model

        network = torch_model(self.model)
        return to_float_batch(network.encode(x)), network.targets(self._task.targets(y))

    def batch_loss(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the loss of a mini-batch; a method that changes its inputs overrides this."""
        from driftline.training.torch_model import torch_model

        return self.loss(torch_model(self.model).training_outputs(x, y), y)

    def memory_gradient(self, x: Inputs, y: Targets) -> Tensor:
        """Return the gradient on samples of a memory; a single one passes twice if there is batch norm of vectors."""
        from torch.nn import BatchNorm1d

        from driftline.training.regularization import gradient, trainable_parameters

        inputs, targets = self.to_tensors(x, y)
        if len(targets) == 1 and any(isinstance(layer, BatchNorm1d) for layer in self.model.modules()):
            inputs, targets = (rows.repeat_interleave(2, dim=0) for rows in (inputs, targets))
        return gradient(self.batch_loss(inputs, targets), trainable_parameters(self.model))

    def update(self, x: Tensor, y: Tensor) -> None:
        """Make one update on a mini-batch."""
        from driftline.training.fit import descend_on

        descend_on(self.optim, self.model, self.batch_loss, x, y)

    def train(self, x: Inputs, y: Targets) -> None:
        """Train on these samples, from the present weights and optimizer state."""
        targets = self._task.targets(y)
        adapter = as_model(self.model)
        if not adapter.is_network:
            if not adapter.supports_partial_fit:
                raise UserError(
                    f"{type(self).__name__} continues training by self.train, and its model cannot: use a model with "
                    "partial_fit, or self.train_from_scratch"
                )
            self.model.partial_fit(x, targets)
            return
        updates, batch = self.round_size(len(targets))
        self.fit_round(x, targets, updates, batch, self.seed.child("lesson", self.training_rounds))
        self.end_round()

    def fit_round(self, x: Inputs, y: np.ndarray, updates: int, batch: int, seed: Seed) -> None:
        """Make the updates of a training round."""
        from driftline.training.fit import fit

        fit(self.model, x, y, self.update, updates=updates, batch=batch, seed=seed, augment=self.augment)

    def round_size(self, n: int) -> tuple[int, int]:
        """Return the number of updates of a training round on n samples, and the size of their mini-batches.

        `epochs` epochs of n samples are as many updates as they fill; a mini-batch is not larger than the samples, but
        has two, which batch norm needs.

        >>> SupervisedLearner().round_size(25), SupervisedLearner(epochs=10, batch=8).round_size(25)
        ((300, 32), (31, 8))
        >>> SupervisedLearner(epochs=10, batch=8).round_size(1)
        (5, 2)
        """
        if self.epochs is None:
            return self.updates, self.batch
        batch = min(self.batch, max(n, 2))
        return max(1, round(self.epochs * n / batch)), batch

    def end_round(self) -> None:
        """Count a training round, and decay the learning rate."""
        self.training_rounds += 1
        for group in self.optim.param_groups:
            group["lr"] *= self.lr_decay

    def train_from_scratch(self, x: Inputs, y: Targets) -> None:
        """Train on these samples from the initial weights."""
        if not as_model(self.model).is_network:
            self.model.fit(x, self._task.targets(y))
            return
        self.model.load_state_dict(self._initial_weights)
        self.new_optimizer()
        self.training_rounds = 0
        self.train(x, y)

    def learn_cumulative(self, x: Inputs, y: Targets) -> None:
        """Train on all labels so far; later, in `finish`, if the learner is evaluated only then."""
        self.history.append((x, y))
        if not self.evaluated_at_end:
            self.train_on_history()

    def finish(self) -> None:
        if self.evaluated_at_end and self.history:
            self.train_on_history()

    def train_on_history(self) -> None:
        """Train on all labels so far."""
        x, y = concat_rows([x for x, _ in self.history]), np.concatenate([y for _, y in self.history])
        if self.start == "warm" and len(self.history) > 1:
            self.train(x, y)
        else:
            self.train_from_scratch(x, y)


TRAINING_SETTINGS = frozenset({*SupervisedLearner.__dataclass_fields__, "start"})
"""The settings that have no effect on a scikit-learn estimator."""
