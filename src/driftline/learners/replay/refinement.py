"""CFT: continual fine-tuning on the errors of each step, with an optional penalty on the weights.

Lin et al., "On Continual Model Refinement in Out-of-Distribution Data Streams", ACL 2022. On the errors E_t of a step:

    none            loss(E_t)
    l2              + strength * sum_i (theta_i - anchor_i)^2,         anchor = the weights at the start of the step
    ewc             + strength / 2 * sum_i F_i (theta_i - anchor_i)^2, anchor = the weights after the last step,
                      F <- F_new + decay * F from its errors; no penalty in the first step, unless F comes
                      from upstream samples there

`er` and `mir` also replay samples. A step without errors trains nothing and does not count.

As in the reference code, one optimizer serves the whole stream. Defaults are the paper's; the settings of the code are
`optimizer="adamw"`, `lr_schedule="linear"`, `max_grad_norm=0.1` and `label_smoothing=0.1`.
Departs from that code: the loss is a mean, not a sum, so that its strengths do not carry over; Fisher information is
divided by n (there: n - 1), and `fisher_decay` counts once. F_new knows neither penalty nor replayed samples. Strengths
are those of our prototype on digits; tune them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

import torch
from torch import Tensor

from driftline.errors import UserError
from driftline.learners.replay.base import EpochLearner
from driftline.learners.settings import Count, NonNegative
from driftline.registry import register
from driftline.seeds import Seed
from driftline.tasks import Task
from driftline.training.regularization import FisherToStart, L2ToStart, fisher, flatten, trainable_parameters
from driftline.types import Inputs, Network, Samples, Targets

SMALLEST = 1e-20  # smaller Fisher information counts as 0: as it decays on, products of it slow a processor down


@register("method", "cft")
@dataclass
class Refinement(EpochLearner):
    """CFT: fine-tuning on the latest errors, with an optional penalty on the weights."""

    penalty: Literal["none", "l2", "ewc"] = "none"  # penalty on changes of the weights
    penalty_weight: NonNegative = 0.1  # weight of the penalty
    fisher_decay: NonNegative = 0.9  # ewc: decay of the Fisher information of earlier steps
    fisher_from: Literal["errors", "upstream"] = "errors"  # ewc: source of the first Fisher information
    fisher_examples: Count | None = 1000  # ewc: number of upstream samples for it; None: all

    quick: ClassVar[Mapping[str, str]] = {"epochs": "epochs"}
    cost_free = frozenset({"fisher_decay", "penalty_weight"})

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        self.anchor: Tensor | None = None
        self.importance: Tensor | None = None

    def learn(self, x: Inputs, y: Targets) -> None:
        seed = self.seed.child("lesson", self.training_rounds)
        if self.penalty == "l2":
            self.anchor = self.flat_weights()
        if self.penalty == "ewc" and self.fisher_from == "upstream" and self.training_rounds == 0:
            self.measure_upstream_fisher()
        self.fine_tune(x, y, seed)
        if self.penalty == "ewc":
            new = fisher(self.model, self._task, x, y, labels="empirical", seed=seed.child("fisher"))
            total = new if self.importance is None else new + self.fisher_decay * self.importance
            self.importance = total.where(total > SMALLEST, 0.0)
            self.anchor = self.flat_weights()
        else:
            self.anchor = None  # the next step sets it
        self.end_round()

    def measure_upstream_fisher(self) -> None:
        """Measure the Fisher information of the upstream model on its training samples."""
        if self._upstream is None:
            raise UserError("fisher_from=upstream needs upstream samples, and there are none: use fisher_from=errors")
        x, y, seed = self._upstream.x, self._upstream.y, self.seed.child("upstream fisher")
        self.importance = fisher(
            self.model, self._task, x, y, labels="empirical", examples=self.fisher_examples, seed=seed
        )
        self.anchor = self.flat_weights()

    def fine_tune(self, x: Inputs, y: Targets, seed: Seed) -> None:
        """Train on new errors."""
        self.train_epochs(x, y, seed)

    def loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        loss = super().loss(outputs, y)
        return loss if self.anchor is None else loss + self.penalty_term(self.anchor)

    def penalty_term(self, anchor: Tensor) -> Tensor:
        """Return the penalty on the present weights."""
        weights = flatten(trainable_parameters(self.model))
        if self.importance is None:
            return L2ToStart(self.penalty_weight).term(weights, anchor)
        return FisherToStart(self.penalty_weight).term(weights, anchor, self.importance)

    def flat_weights(self) -> Tensor:
        """Return a copy of the present weights, in one vector."""
        with torch.no_grad():
            return flatten(trainable_parameters(self.model))


register("method", "online-l2")(partial(Refinement, penalty="l2"))
register("method", "online-ewc")(partial(Refinement, penalty="ewc", penalty_weight=10.0))
