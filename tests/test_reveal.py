from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from driftline.errors import UserError
from driftline.io import serialization
from driftline.reveal import RevealPolicy, known_by
from driftline.seeds import Seed
from driftline.tasks import Classification, Regression
from driftline.testing.inspect import can_reach
from driftline.types import Answers, Reveal, Samples, Step

TASK = Classification(("a", "b"))


def step(k: int, n: int = 6) -> Step:
    return Step(k, str(k), Samples(10.0 * k + np.arange(n)[:, None], np.arange(n) % 2))


def rule(level: Reveal = Reveal.LABELS, **settings: Any) -> RevealPolicy:
    return RevealPolicy(TASK, level, Seed(0), **settings)


ZEROS = Answers(np.zeros(6, int))


def test_all_labels_at_once() -> None:
    shown = rule()(step(3), ZEROS)
    assert shown.x.ravel().tolist() == [30, 31, 32, 33, 34, 35]
    assert shown.y.tolist() == [0, 1, 0, 1, 0, 1]


def test_a_split_is_revealed_with_the_labels() -> None:
    samples = Samples(np.arange(6.0)[:, None], np.arange(6) % 2, split=np.array([0, 0, 1, 0, 1, 1], np.int8))
    shown = rule(budget=4, delay=1)
    assert shown(Step(0, "0", samples), ZEROS) is None
    late = shown(Step(1, "1", samples), ZEROS)
    assert late is not None
    assert late.split is not None
    assert late.split.tolist() == samples.split[late.x[:, 0].astype(int)].tolist()
    assert len(late) == 4
    assert rule()(step(0), ZEROS).split is None


def test_errors_only() -> None:
    shown = rule(Reveal.ERRORS)(step(0), ZEROS)
    assert (shown.x.ravel().tolist(), shown.y.tolist()) == ([1, 3, 5], [1, 1, 1])
    assert rule(Reveal.ERRORS)(step(0), Answers(np.arange(6) % 2)) is None


def test_inputs_only_means_no_label_ever() -> None:
    never = rule(Reveal.INPUTS)
    assert [never(step(k), ZEROS) for k in range(5)] == [None] * 5
    assert never.state() == {"waiting": [], "taken": 30}


def test_late_labels_come_whole_and_in_order_and_the_last_never() -> None:
    late = rule(delay=2)
    shown = [late(step(k), ZEROS) for k in range(4)]
    assert shown[:2] == [None, None]
    assert [s.x[0, 0] for s in shown[2:]] == [0, 10]
    assert [k for k, *_ in late.state()["waiting"]] == [2, 3]


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
        assert not can_reach([shown.x, shown.y], [s.samples.y for s in steps])
        assert not any(np.may_share_memory(shown.x, s.samples.x) for s in steps)


def test_labels_on_their_way_survive_a_restart(tmp_path: Path) -> None:
    whole, first, second = rule(delay=2, budget=3), rule(delay=2, budget=3), rule(delay=2, budget=3)
    expected = [whole(step(k), ZEROS) for k in range(5)]
    for k in range(2):
        first(step(k), ZEROS)
    serialization.save(first.state(), tmp_path / "state")
    second.restore(serialization.load(tmp_path / "state"))
    for k in range(2, 5):
        shown = second(step(k), ZEROS)
        assert shown.x.tolist() == expected[k].x.tolist()
        assert shown.y.tolist() == expected[k].y.tolist()


def given_labels(reveal: RevealPolicy, steps: int, says: int = 0, n: int = 6) -> list[list[int] | None]:
    """Which samples became known after each one that came, if all are answered alike."""
    found: list[list[int] | None] = []
    for k in range(steps):
        feed = reveal.feed(step(k, n))
        assert feed.first == k * n
        for _ in range(len(feed)):
            shown = feed.reveal_next(says)
            found.append(None if shown is None else list(shown.positions))
    return found


def test_one_by_one_a_label_comes_after_its_own_answer() -> None:
    feed = rule().feed(step(2))
    for k in range(6):
        shown = feed.reveal_next(0)
        assert (shown.x.tolist(), shown.y.tolist(), list(shown.positions)) == ([[20.0 + k]], [k % 2], [k])


def test_one_by_one_errors_are_told_and_right_answers_are_not() -> None:
    assert given_labels(rule(Reveal.ERRORS), 1) == [None, [1], None, [3], None, [5]]
    assert given_labels(rule(Reveal.INPUTS), 1) == [None] * 6


def test_one_by_one_a_delay_counts_samples_and_goes_on_across_steps() -> None:
    assert given_labels(rule(delay=4), 2) == [None] * 4 + [[k] for k in range(8)]


def test_missing_labels_never_come_and_are_the_same_both_ways() -> None:
    n = 400
    known = [turn for feed in given_labels(rule(missing=0.3), 1, n=n) if feed for turn in feed]
    assert abs(len(known) / n - 0.7) < 0.07
    shown = rule(missing=0.3)(step(0, n), Answers(np.zeros(n, int)))
    assert shown.x.ravel().astype(int).tolist() == known
    with_delay = [turn for feed in given_labels(rule(missing=0.3, delay=3), 2, n=200) if feed for turn in feed]
    assert with_delay == [
        turn for feed in given_labels(rule(missing=0.3), 2, n=200) if feed for turn in feed if turn < 397
    ]


def test_one_by_one_goes_on_after_a_crash(tmp_path: Path) -> None:
    whole = rule(delay=4, missing=0.3)
    expected = given_labels(whole, 2)[6:]
    first, second = rule(delay=4, missing=0.3), rule(delay=4, missing=0.3)
    given_labels(first, 1)
    serialization.save(first.state(), tmp_path / "state")
    second.restore(serialization.load(tmp_path / "state"))
    feed = second.feed(step(1))
    shown = [feed.reveal_next(0) for _ in range(6)]
    assert [None if one is None else list(one.positions) for one in shown] == expected


def test_no_label_comes_without_a_prediction() -> None:
    reveal = rule()
    feed = reveal.feed(step(0))
    mutable = np.zeros(())
    for _ in range(6):
        feed.reveal_next(mutable)
    mutable[()] = 1
    reveal.verified_answers(Answers(np.zeros(6)), trusted=True)  # what was given is a copy
    with pytest.raises(UserError, match="more labels than the 6 samples"):
        feed.reveal_next(0)
    reveal.feed(step(1)).reveal_next(0)
    with pytest.raises(UserError, match="returned 6 answers but gave 1 predictions"):
        reveal.verified_answers(Answers(np.zeros(6)), trusted=True)


def test_a_prediction_that_is_not_a_number_equals_itself() -> None:
    reveal = rule()
    feed = reveal.feed(step(0, 2))
    feed.reveal_next(np.nan)
    feed.reveal_next(1.5)
    reveal.verified_answers(Answers(np.array([np.nan, 1.5])), trusted=True)


class Agreeing:
    """An object that equals everything."""

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False

    def item(self) -> Agreeing:
        return self


def test_only_plain_predictions_are_told_and_they_are_what_is_recorded() -> None:
    reveal = rule()
    feed = reveal.feed(step(0, 2))
    for wrong in (Agreeing(), [0], None, Answers(np.zeros(2, int))):
        with pytest.raises(UserError, match="takes one prediction, a number or a text, not a"):
            feed.reveal_next(wrong)
    feed = reveal.feed(step(0, 2))
    feed.reveal_next(np.int32(1))
    feed.reveal_next(torch.tensor(0))
    verified = reveal.verified_answers(Answers(np.array([Agreeing(), Agreeing()])), trusted=True)
    assert repr(verified.prediction.tolist()) == "[1, 0]", "such an object equals a number, but is not recorded as one"


def test_scores_and_distances_count_as_they_were_before_the_label() -> None:
    reveal = rule()
    honest = Answers(np.array([1, 0]), scores=np.array([[0.4, 0.6], [0.7, 0.3]]), distance=np.array([1.0, 2.0]))
    rewritten = Answers(honest.prediction, scores=np.array([[1.0, 0.0], [0.0, 1.0]]), distance=np.zeros(2))
    feed = reveal.feed(step(0, 2))
    for row in honest.rows():
        feed.reveal_next(row)
        row.scores[:] = 9  # type: ignore[index]
    verified = reveal.verified_answers(rewritten, trusted=True)
    assert (verified.scores.tolist(), verified.distance.tolist()) == ([[0.4, 0.6], [0.7, 0.3]], [1.0, 2.0])
    for trusted in (True, False):
        feed = reveal.feed(step(0, 2))
        for prediction in honest.prediction:
            feed.reveal_next(prediction)
        verified = reveal.verified_answers(rewritten, trusted=trusted)
        assert verified.prediction.tolist() == [1, 0]
        assert (verified.scores is None, verified.distance is None) == (not trusted, not trusted)


@pytest.mark.parametrize("missing", [0.3, 0.5])
def test_missing_labels_do_not_depend_on_the_block(missing: float) -> None:
    def known(block: int) -> list[int]:
        found = given_labels(rule(missing=missing), 120 // block, n=block)
        return [turn for feed in found if feed for turn in feed]

    assert known(120) == known(10) == known(8)
    late = rule(missing=missing)
    shown = [late(step(k, 20), Answers(np.zeros(20, int))) for k in range(6)]
    assert [20 * k + int(x) - 10 * k for k, one in enumerate(shown) for x in one.x.ravel()] == known(120)


def test_a_learner_cannot_read_the_labels_of_samples_to_come() -> None:
    samples = step(0).samples
    feed = rule().feed(Step(0, "0", samples))
    shown = feed.reveal_next(0)
    assert not can_reach([shown.x, shown.y], samples.y)


@given(st.data())
def test_no_label_is_revealed_before_its_time_and_none_later_than_it_must(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=6))
    n = sum(sizes)
    time = np.sort(data.draw(st.lists(st.integers(0, 20), min_size=n, max_size=n)))
    lateness = data.draw(st.lists(st.one_of(st.integers(0, 12), st.just(float("nan"))), min_size=n, max_size=n))
    known = time + np.array(lateness)
    samples = Samples(x=np.arange(n)[:, None], y=np.arange(n), time=time, known=known)
    policy = RevealPolicy(Regression(), Reveal.LABELS, Seed(0))
    received: dict[int, int] = {}
    for k, end in enumerate(np.cumsum(sizes)):
        step = Step(k, str(k), samples[slice(end - sizes[k], end)])
        copy = RevealPolicy(Regression(), Reveal.LABELS, Seed(0))
        copy.restore(policy.state())
        revealed = policy(step, Answers(step.samples.y))
        again = copy(step, Answers(step.samples.y))
        assert (revealed is None) == (again is None)
        received |= {} if revealed is None else dict.fromkeys(revealed.y.tolist(), k)
    ends = time[np.cumsum(sizes) - 1]
    of_step = np.repeat(np.arange(len(sizes)), sizes)
    expected = {}
    for row in range(n):
        steps = [k for k in range(of_step[row], len(sizes)) if known[row] <= ends[k]]
        expected |= {row: steps[0]} if steps else {}
    assert received == expected


def test_labels_with_times_come_one_by_one_when_they_are_known() -> None:
    days = np.array(["2024-01-01", "2024-01-02", "2024-01-03", "2024-01-09"], "datetime64[us]")
    known = np.array(["2024-01-03", "2024-01-02", "NaT", "2024-01-10"], "datetime64[us]")
    samples = Samples(x=np.arange(4.0)[:, None], y=np.arange(4), time=days, known=known)
    policy = RevealPolicy(Classification(tuple("abcd")), Reveal.LABELS, Seed(0))
    feed = policy.feed(Step(0, "0", samples, one_by_one=True))
    revealed = [feed.reveal_next(0) for _ in range(4)]
    assert [None if one is None else (one.y.tolist(), one.positions) for one in revealed] == [
        None,
        ([1], [1]),
        ([0], [0]),
        None,
    ]
    assert known_by(samples, np.datetime64("2024-01-09")).tolist() == [True, True, False, False]
