"""Base class of refinement methods: they fine-tune a network on the errors of each step.

Lin et al., "On Continual Model Refinement in Out-of-Distribution Data Streams", ACL 2022. On the errors E_t of a step:

    none            loss(E_t)
    l2              + strength * sum_i (theta_i - anchor_i)^2,         anchor = the weights at the start of the step
    ewc             + strength / 2 * sum_i F_i (theta_i - anchor_i)^2, anchor = the weights after the last step,
                      F <- F_new + decay * F from its errors; no penalty in the first step, unless F comes
                      from upstream samples there

A step without errors trains nothing and does not count. As in the reference code, one optimizer serves the whole
stream. Defaults are the paper's; the settings of the code are `optimizer="adamw"`, `lr_schedule="linear"`,
`max_grad_norm=0.1` and `label_smoothing=0.1`. Departs from that code: the loss is a mean, not a sum, so that its
strengths do not carry over; Fisher information is divided by n (there: n - 1), and `fisher_decay` counts once. F_new
includes neither the penalty nor replayed samples. Default strengths were chosen on digits; tune them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from driftline.errors import UserError
from driftline.learners.base import Learner
from driftline.learners.settings import Augmentation, BelowOne, Count, CountOrZero, NonNegative, OptimizerName, Positive
from driftline.seeds import Seed
from driftline.tasks import Task, mean_loss
from driftline.training.fisher import fisher
from driftline.training.fit import descend_on, train_epochs
from driftline.training.optimizers import LRSchedule, lr_factor, new_optimizer
from driftline.training.regularization import FisherToStart, L2ToStart, flatten, trainable_parameters
from driftline.training.torch_model import torch_model
from driftline.types import Inputs, Network, Reveal, Samples, Targets

MIN_FISHER = 1e-20  # smaller Fisher information counts as 0, because arithmetic with subnormal numbers is slow


@dataclass
class RefinementLearner(Learner):
    """A learner that trains on errors in epochs, with an optional penalty on the weights."""

    lr: NonNegative = 1e-3  # learning rate
    updates: CountOrZero = 0  # maximum number of updates per step; 0: no limit
    batch: Count = 8  # size of a mini-batch
    weight_decay: NonNegative = 0.0  # weight decay
    optimizer: OptimizerName = "adam"  # name of the optimizer
    momentum: BelowOne | None = None  # momentum of the optimizer; None: its default
    lr_decay: Positive = 1.0  # factor of the learning rate after each training round
    augment: Augmentation = "none"  # augmentation of training images
    epochs: Count = 10  # epochs per training round
    max_grad_norm: Positive | None = None  # maximum norm of the gradient; None: no limit
    lr_schedule: LRSchedule = "constant"  # how the learning rate falls to 0 over the stream
    lr_updates: Count = 10_000  # updates of the whole stream after which the learning rate is 0, unless it is constant
    warmup_updates: CountOrZero = 0  # updates in which the learning rate rises from 0
    label_smoothing: BelowOne = 0.0  # share of the target that is spread over all classes
    penalty: Literal["none", "l2", "ewc"] = "none"  # penalty on changes of the weights
    penalty_weight: NonNegative = 0.1  # weight of the penalty
    fisher_decay: NonNegative = 0.9  # ewc: decay of the Fisher information of earlier steps
    fisher_from: Literal["errors", "upstream"] = "errors"  # ewc: source of the first Fisher information
    fisher_examples: Count | None = 1000  # ewc: number of upstream samples for the Fisher information; None: all

    requires = "network"
    trains_network: ClassVar[bool] = True
    min_reveal: ClassVar[Reveal] = Reveal.ERRORS
    quick: ClassVar[Mapping[str, str]] = {"epochs": "epochs"}
    cost_free = frozenset({"fisher_decay", "penalty_weight"})
    transient = frozenset({"_upstream"})

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        self._upstream = upstream
        self.training_rounds = 0
        self.anchor: Tensor | None = None
        self.importance: Tensor | None = None
        self.new_optimizer()

    def new_optimizer(self) -> None:
        """Start a new optimizer, which clips gradients and sets the learning rate before each update."""
        decay, momentum = self.weight_decay, self.momentum
        weights = self.model.parameters()
        self.optim = new_optimizer(self.optimizer, weights, lr=self.lr, weight_decay=decay, momentum=momentum)
        self.n_updates = 0
        self.optim.register_step_pre_hook(self._before_update)

    def _before_update(self, *_: object) -> None:
        if self.max_grad_norm is not None:
            nn.utils.clip_grad_norm_(trainable_parameters(self.model), self.max_grad_norm)
        for group in self.optim.param_groups:
            factor = lr_factor(self.lr_schedule, self.n_updates, self.lr_updates, self.warmup_updates)
            group["lr"] = self.lr * self.lr_decay**self.training_rounds * factor
        self.n_updates += 1

    def learn(self, x: Inputs, y: Targets) -> None:
        self.refine(x, y, self.seed.child("lesson", self.training_rounds))

    def refine(self, x: Inputs, y: Targets, seed: Seed) -> None:
        """Train on new errors under the penalty, and set the penalty for the next ones."""
        if self.penalty == "l2":
            self.anchor = self.flat_weights()
        if self.penalty == "ewc" and self.fisher_from == "upstream" and self.training_rounds == 0:
            self.measure_upstream_fisher()
        self.fine_tune(x, y, seed)
        if self.penalty == "ewc":
            new = fisher(self.model, self._task, x, y, labels="empirical", seed=seed.child("fisher"))
            total = new if self.importance is None else new + self.fisher_decay * self.importance
            self.importance = total.where(total > MIN_FISHER, 0.0)
            self.anchor = self.flat_weights()
        else:
            self.anchor = None  # the next step sets it
        self.training_rounds += 1

    def fine_tune(self, x: Inputs, y: Targets, seed: Seed) -> None:
        """Train on new errors; a method that replays old samples overrides this."""
        self.train_epochs(x, y, seed)

    def train_epochs(self, x: Inputs, y: Targets, seed: Seed) -> None:
        """Train for `epochs` epochs, from the present weights and optimizer state."""
        limits = {"epochs": self.epochs, "batch": self.batch, "max_updates": self.updates}
        train_epochs(self.model, self._task, x, y, self.update, seed=seed, augment=self.augment, **limits)

    def update(self, x: Tensor, y: Tensor) -> None:
        """Make one update on a mini-batch."""
        descend_on(self.optim, self.model, self.batch_loss, x, y)

    def batch_loss(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the loss of a mini-batch."""
        return self.loss(torch_model(self.model).training_outputs(x, y), y)

    def loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        """Return the mean loss of outputs, plus the penalty."""
        loss = mean_loss(self._task, outputs, y, self.label_smoothing)
        return loss if self.anchor is None else loss + self.penalty_term(self.anchor)

    def penalty_term(self, anchor: Tensor) -> Tensor:
        """Return the penalty on the present weights."""
        weights = flatten(trainable_parameters(self.model))
        if self.importance is None:
            return L2ToStart(self.penalty_weight).term(weights, anchor)
        return FisherToStart(self.penalty_weight).term(weights, anchor, self.importance)

    def measure_upstream_fisher(self) -> None:
        """Measure the Fisher information of the upstream model on its training samples."""
        if self._upstream is None:
            raise UserError("fisher_from=upstream needs upstream samples, and there are none: use fisher_from=errors")
        x, y, seed = self._upstream.x, self._upstream.y, self.seed.child("upstream fisher")
        self.importance = fisher(
            self.model, self._task, x, y, labels="empirical", examples=self.fisher_examples, seed=seed
        )
        self.anchor = self.flat_weights()

    def flat_weights(self) -> Tensor:
        """Return a copy of the present weights, in one vector."""
        with torch.no_grad():
            return flatten(trainable_parameters(self.model))
