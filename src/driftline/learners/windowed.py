"""The common part of methods whose domains are sliding windows of periods (Wild-Time's "-T" methods)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from driftline.errors import UserError
from driftline.learners.pooled import Pooled
from driftline.tasks import Task
from driftline.types import Samples

if TYPE_CHECKING:
    from torch import Tensor

    from driftline.training.windows import Grouped


@dataclass
class Windowed(Pooled):
    """Trains on everything so far; each mini-batch has an equal share from each of `groups` windows.

    With fewer windows than `groups`, all of them are in each mini-batch. One window only, as in the first periods,
    leaves nothing to compare, and the method is then ERM on all data (with IRM's penalty, for that method).
    """

    groups: int = 10  # windows in a mini-batch
    window: int = 5  # periods in a window

    requires = "network"

    def prepare(self, model: Any, task: Task, upstream: Samples | None = None) -> None:
        if self.groups < 1 or self.window < 1:
            raise UserError(f"groups and window are 1 or more; these are {self.groups} and {self.window}")
        super().prepare(model, task, upstream)

    def windows(self) -> list[range]:
        """The rows of each window in the pool."""
        from driftline.training.windows import sliding

        return sliding([len(y) for _, y in self.seen], self.window)

    def train(self, x: Any, y: Any) -> None:
        """Train on the pool; `x` and `y` are all that was seen, in order."""
        from driftline.training.windows import fit_windows

        fit_windows(
            self.model,
            x,
            self._task.targets(y),
            self.update_groups,
            windows=self.windows(),
            groups=self.groups,
            updates=self.updates,
            batch=self.batch,
            seed=self.seed.child("lesson", self.lessons),
        )
        self.lessons += 1

    def update_groups(self, batch: Grouped) -> None:
        """One step of training on a mini-batch in groups."""
        from driftline.training.fit import descend

        descend(self.descent, self.group_loss(batch))

    def group_loss(self, batch: Grouped) -> Tensor:
        """What an update makes smaller; each method says."""
        raise NotImplementedError
