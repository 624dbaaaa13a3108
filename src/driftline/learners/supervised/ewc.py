"""EWC: elastic weight consolidation, online.

Kirkpatrick et al., "Overcoming catastrophic forgetting in neural networks", PNAS 2017; the running form is Schwarz
et al., "Progress & Compress", ICML 2018, after Huszár, "Note on the quadratic penalties in EWC", PNAS 2018:

    loss(theta) + strength / 2 * sum_i F_i (theta_i - anchor_i)^2
    after each round:   F <- F_new + decay * F,  anchor <- theta

F_new is the diagonal Fisher information on the round's samples (`training.fisher`). There is no
penalty in the first training round: nothing is known of the data an upstream model was trained on.

Departs from Schwarz et al. and Wild-Time in that `fisher_decay` does not also multiply the penalty; a factor of
`penalty_weight` says the same, and at the default decay of 1 there is no difference. Departs from Wild-Time's code,
which estimates F_new from 32 examples (one mini-batch) labeled with the model's own best guess, in that all samples
and their true labels are used; `fisher_examples=32` with `fisher_labels="predicted"` is that estimate. Strength and
decay are Wild-Time's for Yearbook.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from driftline.learners.settings import Count
from driftline.learners.supervised.base import SupervisedLearner
from driftline.registry import register
from driftline.tasks import Task
from driftline.training.fisher import FisherLabels, fisher
from driftline.training.regularization import FisherToStart, flatten, trainable_parameters
from driftline.types import Inputs, Network, Samples, Targets


@register("method", "ewc")
@dataclass
class EWC(SupervisedLearner):
    """EWC: fine-tuning with a Fisher-weighted quadratic penalty towards the latest weights."""

    penalty_weight: float = 0.5  # weight of the penalty
    fisher_decay: float = 1.0  # decay of the Fisher information of earlier training rounds
    fisher_labels: FisherLabels = (
        "empirical"  # labels for the Fisher information: true ones, draws from the model, or its predictions
    )
    fisher_examples: Count | None = (
        None  # number of samples for the Fisher information; None: all of the training round
    )

    requires = "network"

    cost_free = frozenset({"fisher_decay", "penalty_weight"})

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        self.importance: Tensor | None = None
        self.anchor: Tensor | None = None

    def loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        loss = super().loss(outputs, y)
        if self.importance is None or self.anchor is None:
            return loss
        penalty = FisherToStart(self.penalty_weight)
        return loss + penalty.term(flatten(trainable_parameters(self.model)), self.anchor, self.importance)

    def learn(self, x: Inputs, y: Targets) -> None:
        seed = self.seed.child("fisher", self.training_rounds)
        self.train(x, y)
        labels, examples = self.fisher_labels, self.fisher_examples
        new = fisher(self.model, self._task, x, y, labels=labels, examples=examples, batches=True, seed=seed)
        self.importance = new if self.importance is None else new + self.fisher_decay * self.importance
        with torch.no_grad():
            self.anchor = flatten(trainable_parameters(self.model))
