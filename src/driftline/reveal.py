"""What a learner is shown once it has answered: nothing, its errors or all labels; now or late; within a budget.

The contract is physical. What is shown are copies, so no array in a learner's hands has a base or a neighbour
from which an unrevealed label could be read.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from driftline.seeds import Seed
from driftline.tasks import Task
from driftline.types import Answers, Reveal, Step, join, take


@dataclass
class Shown:
    """Inputs with the labels that have become known."""

    x: object
    y: np.ndarray

    def __len__(self) -> int:
        return len(self.y)


@dataclass
class Revealing:
    """The rule by which labels become known.

    `delay`: how many steps later they arrive; labels that would arrive after the stream's end never do.
    `budget`: at most so many labels per step, drawn at random from those that would be shown.
    """

    task: Task
    level: Reveal
    seed: Seed
    delay: int = 0
    budget: int | None = None
    waiting: list[tuple[int, object, np.ndarray]] = field(default_factory=list)

    def __call__(self, step: Step, answers: Answers) -> Shown | None:
        """What becomes known at the end of this step, or None."""
        rows = self._rows(step, answers)
        if len(rows):
            self.waiting.append((step.index, take(step.samples.x, rows), np.array(step.samples.y[rows])))
        due = [entry for entry in self.waiting if entry[0] <= step.index - self.delay]
        self.waiting = self.waiting[len(due) :]
        return Shown(join([x for _, x, _ in due]), np.concatenate([y for _, _, y in due])) if due else None

    def _rows(self, step: Step, answers: Answers) -> np.ndarray:
        if self.level is Reveal.INPUTS:
            return np.empty(0, int)
        rows = np.arange(len(step.samples))
        if self.level is Reveal.ERRORS:
            rows = rows[self.task.correct(answers.prediction, step.samples.y) < 1]
        if self.budget is not None and len(rows) > self.budget:
            chosen = self.seed.child("budget", step.index).numpy().choice(len(rows), self.budget, replace=False)
            rows = rows[np.sort(chosen)]
        return rows

    def state(self) -> list[tuple[int, object, np.ndarray]]:
        """The labels on their way."""
        return self.waiting

    def restore(self, state: list[tuple[int, object, np.ndarray]]) -> None:
        self.waiting = list(state)
