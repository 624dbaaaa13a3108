from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from driftline import state
from driftline.reveal import Revealing
from driftline.seeds import Seed
from driftline.tasks import Classification
from driftline.testing.looking import leads_to
from driftline.types import Answers, Reveal, Samples, Step

TASK = Classification(("a", "b"))


def step(k: int, n: int = 6) -> Step:
    return Step(k, str(k), Samples(10.0 * k + np.arange(n)[:, None], np.arange(n) % 2))


def rule(level: Reveal = Reveal.LABELS, **settings: int) -> Revealing:
    return Revealing(TASK, level, Seed(0), **settings)


ZEROS = Answers(np.zeros(6, int))


def test_all_labels_at_once() -> None:
    shown = rule()(step(3), ZEROS)
    assert shown.x.ravel().tolist() == [30, 31, 32, 33, 34, 35]
    assert shown.y.tolist() == [0, 1, 0, 1, 0, 1]


def test_errors_only() -> None:
    shown = rule(Reveal.ERRORS)(step(0), ZEROS)
    assert (shown.x.ravel().tolist(), shown.y.tolist()) == ([1, 3, 5], [1, 1, 1])
    assert rule(Reveal.ERRORS)(step(0), Answers(np.arange(6) % 2)) is None


def test_inputs_only_means_no_label_ever() -> None:
    never = rule(Reveal.INPUTS)
    assert [never(step(k), ZEROS) for k in range(5)] == [None] * 5
    assert never.state() == []


def test_late_labels_come_whole_and_in_order_and_the_last_never() -> None:
    late = rule(delay=2)
    shown = [late(step(k), ZEROS) for k in range(4)]
    assert shown[:2] == [None, None]
    assert [s.x[0, 0] for s in shown[2:]] == [0, 10]
    assert [k for k, _, _ in late.state()] == [2, 3]


def test_late_errors_are_those_of_the_time_of_the_answer() -> None:
    late = rule(Reveal.ERRORS, delay=1)
    late(step(0), ZEROS)
    assert late(step(1), Answers(np.arange(6) % 2)).x.ravel().tolist() == [1, 3, 5]


@pytest.mark.parametrize("level", [Reveal.LABELS, Reveal.ERRORS])
def test_a_budget_draws_different_rows_without_repetition(level: Reveal) -> None:
    limited = rule(level, budget=2)
    draws = [limited(step(k), ZEROS) for k in range(20)]
    rows = [tuple((draw.x.ravel() - 10 * k).astype(int)) for k, draw in enumerate(draws)]
    assert all(len(row) == 2 and row[0] < row[1] for row in rows)
    assert len(set(rows)) > 2
    if level is Reveal.ERRORS:
        assert all(i % 2 for row in rows for i in row)
    again = rule(level, budget=2)
    assert again(step(7), ZEROS).x.tolist() == draws[7].x.tolist()  # a step's draw does not depend on earlier ones
    assert rule(level, budget=0)(step(0), ZEROS) is None
    assert len(rule(level, budget=50)(step(0), ZEROS)) == (6 if level is Reveal.LABELS else 3)


def test_what_is_shown_are_copies() -> None:
    for settings in ({}, {"budget": 2}, {"delay": 1}):
        reveal, steps = rule(**settings), [step(0), step(1)]
        shown = [reveal(s, ZEROS) for s in steps][-1]
        assert shown.x.base is None
        assert shown.y.base is None
        assert not leads_to([shown.x, shown.y], [s.samples.y for s in steps])
        assert not any(np.may_share_memory(shown.x, s.samples.x) for s in steps)


def test_labels_on_their_way_survive_a_restart(tmp_path: Path) -> None:
    whole, first, second = rule(delay=2, budget=3), rule(delay=2, budget=3), rule(delay=2, budget=3)
    expected = [whole(step(k), ZEROS) for k in range(5)]
    for k in range(2):
        first(step(k), ZEROS)
    state.save(first.state(), tmp_path / "state")
    second.restore(state.load(tmp_path / "state"))
    for k in range(2, 5):
        shown = second(step(k), ZEROS)
        assert shown.x.tolist() == expected[k].x.tolist()
        assert shown.y.tolist() == expected[k].y.tolist()
