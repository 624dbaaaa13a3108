"""Base class for cumulative learners: they train on all labels so far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from driftline.learners.supervised.base import SupervisedLearner
from driftline.tasks import Task
from driftline.types import Samples, concat_rows


@dataclass
class CumulativeLearner(SupervisedLearner):
    """A learner that trains on all labels so far at each delivery; once, at the end, if it is evaluated only then.

    `start`: from the initial weights each time ("fresh"), or from the previous ones ("warm", as Wild-Time's
    Eval-Stream does).
    """

    start: Literal["fresh", "warm"] = "fresh"

    def prepare(self, model: Any, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        self.history: list[tuple[Any, np.ndarray]] = []

    def learn(self, x: Any, y: Any) -> None:
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
