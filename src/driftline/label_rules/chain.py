"""The label rules of a run, one after another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from driftline.errors import UserError
from driftline.label_rules.base import LabelRule
from driftline.seeds import Seed
from driftline.tasks import Task
from driftline.types import Answers, State


class Selected(NamedTuple):
    """The labels that rules let through."""

    rows: np.ndarray
    """Indices into the answers."""
    propensity: np.ndarray | None
    """The probability with which each was let through; None if no rule states it, or one that uses answers does not."""


class RuleChain:
    """Label rules by name, in order: each sees what those before it let through, and delays add up."""

    def __init__(self, rules: Mapping[str, LabelRule], task: Task, seed: Seed) -> None:
        self.rules = dict(rules)
        for name, rule in self.rules.items():
            rule.prepare(task, seed.child("labels", name))
        self.needs_scores = any(rule.needs_scores for rule in self.rules.values())
        self.uses_answers = any(rule.uses_answers for rule in self.rules.values())

    def __bool__(self) -> bool:
        return bool(self.rules)

    def select(self, answers: Answers, rows: np.ndarray, first: int) -> Selected:
        """Return which of these rows of a step are revealed; `first`: position of the step's first sample."""
        if self.needs_scores and answers.scores is None:
            name = next(name for name, rule in self.rules.items() if rule.needs_scores)
            raise UserError(f"{name} needs a score per class with each answer, and this method gives none")
        propensity, is_known = None, True
        for rule in self.rules.values():
            of = answers[rows]
            chosen = np.flatnonzero(rule.selects(of, first + rows))
            if (known := rule.propensity(of)) is not None:
                propensity = known if propensity is None else propensity * known
            elif rule.uses_answers:
                is_known = False
            rows, propensity = rows[chosen], None if propensity is None else propensity[chosen]
        return Selected(rows, propensity if is_known else None)

    def shown(self, y: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """Return the labels to reveal in place of these true ones."""
        for rule in self.rules.values():
            y = rule.shown(y, positions)
        return y

    def delay(self, positions: np.ndarray) -> np.ndarray:
        """Return the number of steps by which each label is late."""
        return sum((rule.delay(positions) for rule in self.rules.values()), np.zeros(len(positions), int))

    def observe(self, correct: np.ndarray) -> None:
        """Pass on to all rules whether answers agree with the labels that have arrived."""
        for rule in self.rules.values():
            rule.observe(correct)

    def state(self) -> State:
        return {name: rule.state() for name, rule in self.rules.items()}

    def restore(self, state: State) -> None:
        for name, rule in self.rules.items():
            rule.restore(state[name])
