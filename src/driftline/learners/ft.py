"""Fine-tuning: go on training the same model on the latest labels; optimiser state is carried over, as in Wild-Time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from driftline.learners.trained import Trained, must_continue
from driftline.models.estimator import Estimator
from driftline.registry import register
from driftline.tasks import Task
from driftline.types import Samples


@register("method", "ft")
@dataclass
class FineTune(Trained):
    """Continue from the previous weights on what has just been revealed."""

    def prepare(self, model: Any, task: Task, upstream: Samples | None = None) -> None:
        if isinstance(model, Estimator):
            must_continue(model, "ft")
        super().prepare(model, task, upstream)

    def learn(self, x: Any, y: Any) -> None:
        if isinstance(self.model, Estimator):
            self.model.continue_fit(x, y)
        else:
            self.train(x, y)
