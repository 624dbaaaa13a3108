"""The contract of `Learner.answer_one_by_one`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from driftline.errors import UserError
from driftline.learners.base import Learner
from driftline.reveal import RevealPolicy
from driftline.seeds import Seed
from driftline.testing.fixtures import TASK
from driftline.types import Answers, Reveal, Samples, Step

SCHEDULES: tuple[dict[str, float], ...] = ({}, {"delay": 3}, {"missing": 0.5})
TOLERANCE = 1e-3  # the last digits of a network's scores depend on the batch size


def check_one_by_one(make: Callable[[], Learner], samples: Samples, name: str) -> None:
    """Check that an overridden `answer_one_by_one` answers as the base class, which predicts one sample at a time."""
    if type(make()).answer_one_by_one is Learner.answer_one_by_one:
        return
    for schedule in SCHEDULES:
        together = _answers(make(), samples, schedule, one_by_one=False)
        singly = _answers(make(), samples, schedule, one_by_one=True)
        differ = np.flatnonzero(together.prediction != singly.prediction)
        case = f"sample {differ[0] if len(differ) else ''} of {len(samples)}, labels with {schedule or 'no delay'}"
        assert not len(differ), f"{name}: answer_one_by_one gives other predictions than one by one: {case}"
        if together.scores is not None and singly.scores is not None:
            gap = float(np.abs(together.scores - singly.scores).max())
            assert gap < TOLERANCE, (
                f"{name}: answer_one_by_one gives scores that differ by {gap:g} from those one by one"
            )


def _answers(learner: Learner, samples: Samples, schedule: dict[str, float], *, one_by_one: bool) -> Answers:
    reveal = RevealPolicy(TASK, Reveal.LABELS, Seed(4), **schedule)  # type: ignore[arg-type]
    feed = reveal.feed(Step(0, "0", samples, one_by_one=True))
    answers = Learner.answer_one_by_one(learner, feed) if one_by_one else learner.answer_one_by_one(feed)
    try:
        reveal.verified_answers(answers, trusted=True)
    except UserError as error:
        raise AssertionError(str(error)) from error
    return answers
