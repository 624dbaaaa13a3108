"""IRM-T: invariant risk minimization over windows of time.

Arjovsky et al., "Invariant Risk Minimization", 2019 (IRMv1); as a method over windows of time: Yao et al.,
"Wild-Time", NeurIPS 2022.

The penalty is the product of two independent halves of a group, which is unbiased. For the first `anneal_updates`
updates it has weight 1, then `penalty_weight`, and the optimizer starts again at the change, as in DomainBed and WILDS;
Wild-Time's code has this option but never advances its counter. The count starts again with a fresh start, not with a
warm one.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from driftline.learners.domain_generalization.base import DomainGeneralizationLearner
from driftline.learners.domain_generalization.windows import GroupedBatch
from driftline.registry import register
from driftline.tasks import Task
from driftline.training.objectives import IRM
from driftline.types import Inputs, Network, Samples, Targets


@register("method", "irm-t")
@dataclass
class IRMT(DomainGeneralizationLearner):
    """IRM-T: mean over windows of risk + penalty_weight * IRMv1's gradient penalty."""

    penalty_weight: float = 1.0  # weight of IRMv1's gradient penalty
    anneal_updates: int = 0  # updates before the penalty has its full weight

    cost_free = frozenset({"penalty_weight"})

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        self.n_updates = 0

    def train(self, x: Inputs, y: Targets) -> None:
        if self.training_rounds == 0:
            self.n_updates = 0
        super().train(x, y)

    def update_groups(self, batch: GroupedBatch) -> None:
        if self.n_updates == self.anneal_updates > 0:
            self.new_optimizer()
        super().update_groups(batch)
        self.n_updates += 1

    def group_loss(self, batch: GroupedBatch) -> Tensor:
        weight = self.penalty_weight if self.n_updates >= self.anneal_updates else 1.0
        return IRM(weight).loss(self._task, batch.groups(self.model(batch.x)))
