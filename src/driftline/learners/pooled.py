"""Base class for cumulative learners: they train on all labels so far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from driftline.learners.trained import Trained
from driftline.tasks import Task
from driftline.types import Samples, join


@dataclass
class Pooled(Trained):
    """A learner that trains on all labels so far at each delivery; once, at the end, if it is evaluated only then.

    `start`: from the initial weights each time ("fresh"), or from the previous ones ("warm", as Wild-Time's
    Eval-Stream does).
    """

    start: Literal["fresh", "warm"] = "fresh"

    def prepare(self, model: Any, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        self.seen: list[tuple[Any, np.ndarray]] = []

    def learn(self, x: Any, y: Any) -> None:
        self.seen.append((x, y))
        if not self.waits:
            self.train_on_all()

    def finish(self) -> None:
        if self.waits and self.seen:
            self.train_on_all()

    def train_on_all(self) -> None:
        """Train on all labels so far."""
        x, y = join([x for x, _ in self.seen]), np.concatenate([y for _, y in self.seen])
        if self.start == "warm" and len(self.seen) > 1:
            self.train(x, y)
        else:
            self.train_afresh(x, y)
