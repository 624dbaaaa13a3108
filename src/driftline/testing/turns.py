"""The contract of a learner that answers samples which come one by one several at a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from driftline.errors import UserError
from driftline.learners.base import Learner
from driftline.reveal import Revealing
from driftline.seeds import Seed
from driftline.testing.examples import TASK
from driftline.types import Answers, Reveal, Samples, Step

RULES: tuple[dict[str, float], ...] = ({}, {"delay": 3}, {"missing": 0.5})
CLOSE = 1e-3  # a network's scores depend, in their last digits, on how many inputs it is asked about together


def check_in_turn(make: Callable[[], Learner], samples: Samples, name: str) -> None:
    """Its own `in_turn` must answer as the base class does, which asks about one sample after the other."""
    if type(make()).in_turn is Learner.in_turn:
        return
    for rule in RULES:
        together = _answers(make(), samples, rule, one_by_one=False)
        singly = _answers(make(), samples, rule, one_by_one=True)
        differ = np.flatnonzero(together.prediction != singly.prediction)
        said = f"sample {differ[0] if len(differ) else ''} of {len(samples)}, labels told with {rule or 'no delay'}"
        assert not len(differ), f"{name}: in_turn does not answer as one by one: {said}"
        if together.scores is not None and singly.scores is not None:
            gap = float(np.abs(together.scores - singly.scores).max())
            assert gap < CLOSE, f"{name}: in_turn gives scores that differ by {gap:g} from those one by one"


def _answers(learner: Learner, samples: Samples, rule: dict[str, float], *, one_by_one: bool) -> Answers:
    reveal = Revealing(TASK, Reveal.LABELS, Seed(4), **rule)  # type: ignore[arg-type]
    turns = reveal.turns(Step(0, "0", samples, in_turn=True))
    answers = Learner.in_turn(learner, turns) if one_by_one else learner.in_turn(turns)
    try:
        reveal.recorded(answers, trusted=True)
    except UserError as error:
        raise AssertionError(str(error)) from error
    return answers
