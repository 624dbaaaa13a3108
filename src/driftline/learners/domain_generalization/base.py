"""Base class for domain generalization with sliding windows of time as domains (Wild-Time's "-T" methods)."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from driftline.learners.domain_generalization.windows import GroupedBatch, fit_grouped, sliding_windows
from driftline.learners.settings import Count
from driftline.learners.supervised.base import CumulativeLearner
from driftline.training.fit import optimizer_step
from driftline.types import Inputs, Targets


@dataclass
class DomainGeneralizationLearner(CumulativeLearner):
    """A cumulative learner whose mini-batches have an equal share from each of `groups` windows.

    With fewer windows than `groups`, all of them are in each mini-batch. One window only, as in the first periods,
    leaves nothing to compare, and the method is then ERM on all data (with IRM's penalty, for that method).
    """

    groups: Count = 10  # windows in a mini-batch
    window: Count = 5  # periods in a window

    requires = "network"

    def windows(self) -> list[range]:
        """Return the rows of each window."""
        return sliding_windows([len(y) for _, y in self.history], self.window)

    def train(self, x: Inputs, y: Targets) -> None:
        """Train on `x` and `y`, all labels so far in time order."""
        updates, batch = self.round_size(len(y))
        fit_grouped(
            self.model,
            x,
            self._task.targets(y),
            self.update_groups,
            windows=self.windows(),
            groups=self.groups,
            updates=updates,
            batch=batch,
            seed=self.seed.child("lesson", self.training_rounds),
            augment=self.augment,
        )
        self.end_round()

    def update_groups(self, batch: GroupedBatch) -> None:
        """Make one update on a grouped mini-batch."""
        optimizer_step(self.optim, self.group_loss(batch))

    def group_loss(self, batch: GroupedBatch) -> Tensor:
        """Return the loss of a grouped mini-batch."""
        raise NotImplementedError
