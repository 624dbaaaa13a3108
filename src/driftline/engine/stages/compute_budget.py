"""Runs at equal compute: a budget of multiply-accumulates that a method may spend, evenly over the steps of a stream.

In step k of n a run may have spent k/n of its budget. The training loops of the package stop there, in the middle of a
training round if need be. A method with a loop of its own is stopped after its round: while it has spent more than its
allowance, it gets no labels and answers without adapting. Answers count as compute, and are always given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from driftline.errors import UserError
from driftline.learners.base import Learner, is_built_in
from driftline.learners.predict_check import check_purity_once
from driftline.reveal import LabelFeed, RevealedLabels
from driftline.types import Answers, Inputs

if TYPE_CHECKING:
    from driftline.training.mac_counter import MacCounter


class BudgetedLearner:
    """A learner that stops learning while its allowance is spent."""

    def __init__(self, learner: Learner, meter: MacCounter) -> None:
        self._learner = learner
        self._meter = meter
        self.predict = check_purity_once(learner)
        self.diagnostics = learner.diagnostics
        self.batch_dependent = learner.batch_dependent

    def answer(self, x: Inputs) -> Answers:
        """Predict and adapt; only predict while the allowance is spent."""
        return self.predict(x) if self._meter.is_spent else self._learner.answer(x)

    def receive(self, shown: RevealedLabels) -> None:
        """Learn, unless the allowance is spent."""
        if not self._meter.is_spent:
            self._learner.receive(shown)

    def answer_one_by_one(self, feed: LabelFeed) -> Answers:
        """Answer and learn one by one; only answer while the allowance is spent."""
        if not self._meter.is_spent:
            answers = self._learner.answer_one_by_one(feed)
            return answers if is_built_in(type(self._learner)) else Answers(answers.prediction)
        answers = self.predict(feed.x)
        for row in answers.rows():
            feed.reveal_next(row)
        return answers

    def finish(self) -> None:
        """Train a last time, unless the budget is spent."""
        if not self._meter.is_spent:
            self._learner.finish()


def with_allowance(learner: Learner, meter: MacCounter | None, budget: int | None) -> Learner:
    """Return the learner, stopped where its budget is spent; without a budget, as it is."""
    if budget is None:
        return learner
    if meter is None:
        raise UserError("budget_macs: the compute of an estimator is not counted; use a network")
    return cast(Learner, BudgetedLearner(learner, meter))


def set_allowance(meter: MacCounter | None, budget: int | None, step: int, steps: int) -> None:
    """Allow the share of the budget that belongs to the steps up to this one."""
    if meter is not None and budget is not None:
        meter.allowance = budget * min(step + 1, steps) // steps
