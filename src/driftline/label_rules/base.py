"""Base classes of label rules: what a rule may see, and what it may change.

A rule sees the positions of samples in the stream and the answers to them, never their labels; a rule that shows wrong
labels sees the label that it shows instead. Its random numbers are drawn by position, so they are the same for all
methods, for any size of a step, and after an interruption.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from driftline.errors import UserError
from driftline.label_rules.draws import PositionDraws
from driftline.seeds import Seed
from driftline.tasks import Classification, Task
from driftline.types import Answers, State

MAX_DELAY = 2**40
Share = Annotated[float, Field(gt=0, le=1)]
Rate = Annotated[float, Field(ge=0, lt=1)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class LabelRule:
    """A rule on labels; a subclass is a dataclass of its settings and overrides what it decides."""

    uses_answers: ClassVar[bool] = False
    """Whether the labels revealed depend on a method's answers."""
    delays: ClassVar[bool] = False
    """Whether it makes labels late."""

    def prepare(self, task: Task, seed: Seed) -> None:
        """Take the task and the source of all its random numbers, before the first step; refuse a task it cannot do."""
        self.task, self.draws = task, PositionDraws(seed)

    @property
    def needs_scores(self) -> bool:
        """Whether it needs a score per class with each answer."""
        return False

    def selects(self, answers: Answers, positions: np.ndarray) -> np.ndarray:
        """Return which labels are revealed, from the answers alone."""
        return np.ones(len(positions), bool)

    def propensity(self, answers: Answers) -> np.ndarray | None:
        """Return the probability that each label is revealed, given its answer; None if it is not known."""
        return None

    def shown(self, y: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """Return the labels to reveal in place of these true ones."""
        return y

    def delay(self, positions: np.ndarray) -> np.ndarray:
        """Return the number of steps by which each label is late."""
        return np.zeros(len(positions), int)

    def observe(self, correct: np.ndarray) -> None:
        """Take whether answers agree with their labels, when those labels arrive."""

    def state(self) -> State:
        """Return what changes along the stream."""
        return {}

    def restore(self, state: State) -> None:
        """Restore what `state` returned."""

    def need_classes(self) -> tuple[str, ...]:
        """Return the names of the classes; refuse a task without classes."""
        if not isinstance(self.task, Classification):
            raise UserError(f"{type(self).__name__} needs a classification task")
        return self.task.classes


def whole_steps(delay: np.ndarray) -> np.ndarray:
    """Return delays as whole steps, rounded down; of far more steps than any stream has, as many as an integer holds.

    >>> whole_steps(np.array([0.9, 7.2, np.inf])).tolist()
    [0, 7, 1099511627776]
    """
    steps: np.ndarray = np.minimum(delay, MAX_DELAY).astype(int)
    return steps


@dataclass
class Query(LabelRule):
    """Base class of queries: samples are taken in order, and a label is asked for or not, within a budget.

    Of n samples, at most share * n labels are asked for, rounded up, at every moment.
    """

    share: Share = 0.1  # share of the samples whose labels may be asked for

    uses_answers: ClassVar[bool] = True

    def prepare(self, task: Task, seed: Seed) -> None:
        super().prepare(task, seed)
        self.seen, self.asked = 0, 0

    def selects(self, answers: Answers, positions: np.ndarray) -> np.ndarray:
        chosen = np.zeros(len(positions), bool)
        for k, (certainty, draw) in enumerate(
            zip(self.certainty(answers, positions).tolist(), self.draws(positions).tolist(), strict=True)
        ):
            self.seen += 1
            chosen[k] = self.asked < self.share * self.seen and self.asks(certainty, draw)
            self.asked += int(chosen[k])
        return chosen

    def certainty(self, answers: Answers, positions: np.ndarray) -> np.ndarray:
        """Return how certain each answer is, from which `asks` decides; 0 for queries that do not look at answers."""
        return np.zeros(len(positions))

    @abstractmethod
    def asks(self, certainty: float, draw: float) -> bool:
        """Return whether to ask for the label of the next sample, if the budget allows; `draw` is uniform in [0, 1)."""

    def state(self) -> State:
        return {"seen": self.seen, "asked": self.asked}

    def restore(self, state: State) -> None:
        self.seen, self.asked = int(state["seen"]), int(state["asked"])


@dataclass
class ThresholdQuery(Query):
    """Base class of queries of answers whose certainty is below a threshold that follows the budget.

    The variable uncertainty strategy of Žliobaitė et al., "Active Learning with Drifting Streaming Data", TNNLS 2014:
    each question lowers the threshold, each sample without one raises it. Where the budget forbids a question, it
    stays.
    """

    threshold: Positive = 1.0  # certainty below which a label is asked for, at first
    adjustment: Rate = 0.01  # relative change of the threshold after each sample; 0: it stays as it is

    def prepare(self, task: Task, seed: Seed) -> None:
        super().prepare(task, seed)
        self.need_classes()
        self.limit = self.threshold

    @property
    def needs_scores(self) -> bool:
        return True

    def asks(self, certainty: float, draw: float) -> bool:
        asked = certainty < self.limit
        self.limit *= 1 - self.adjustment if asked else 1 + self.adjustment
        return asked

    def state(self) -> State:
        return {**super().state(), "limit": self.limit}

    def restore(self, state: State) -> None:
        super().restore(state)
        self.limit = float(state["limit"])
