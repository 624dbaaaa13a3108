"""Sequences of tasks as streams: each sample once, boundaries where they belong, and blur as its formula says."""

from __future__ import annotations

import functools
import operator
from itertools import pairwise

import numpy as np
import pytest

from driftline.seeds import Seed
from driftline.streams import Periods, TaskStream, task_stream
from driftline.streams.task_sequence import AllTaskProbes, blurred_order
from driftline.testing import check_stream
from driftline.types import Samples

SIZES = (70, 50, 60)


def periods(sizes: tuple[int, ...] = SIZES) -> Periods:
    offsets = np.cumsum([0, *sizes])
    parts = [np.arange(start, end) for start, end in pairwise(offsets)]
    shown = tuple(
        Samples(x=rows[:, None] * 1.0, y=rows % 7, id=rows, time=rows * 0 + t) for t, rows in enumerate(parts)
    )
    tests = tuple(
        Samples(np.zeros((t + 3, 1)), np.arange(t + 3), id=1000 + 10 * t + np.arange(t + 3)) for t in range(len(sizes))
    )
    return Periods(tuple("abc"[: len(sizes)]), shown, tests, {})


def ids(stream: TaskStream) -> list[list[int]]:
    return [stream[k].samples.id.tolist() for k in range(len(stream))]


def test_a_step_is_a_task_and_each_sample_comes_once() -> None:
    stream = task_stream(periods(), 0, None, 0, Seed(0))
    check_stream(stream)
    found = ids(stream)
    assert [sorted(part) for part in found] == [list(range(70)), list(range(70, 120)), list(range(120, 180))]
    assert found[0] != sorted(found[0]), "in random order"
    assert (stream.names, stream.ends) == (("a", "b", "c"), (0, 1, 2))
    assert ids(task_stream(periods(), 1, None, 0, Seed(0))) == found[1:], "the first may be upstream"
    assert ids(task_stream(periods(), 0, None, 0, Seed(1))) != found


def test_steps_end_where_tasks_end() -> None:
    stream = task_stream(periods(), 0, 32, 0, Seed(0))
    check_stream(stream)
    assert [len(part) for part in ids(stream)] == [32, 32, 6, 32, 18, 32, 28]
    assert (stream.names, stream.ends) == (tuple("aaabbcc"), (2, 4, 6))
    whole = ids(task_stream(periods(), 0, None, 0, Seed(0)))
    assert functools.reduce(operator.iadd, ids(stream)[:3], []) == whole[0], "the same order, whatever the steps"


def test_blur_moves_samples_over_boundaries_and_keeps_the_order_of_each_task() -> None:
    sharp, blurred = (task_stream(periods(), 0, 16, blur, Seed(3)) for blur in (0, 1))
    before, after = functools.reduce(operator.iadd, ids(sharp), []), functools.reduce(operator.iadd, ids(blurred), [])
    assert sorted(after) == list(range(180))
    assert before != after
    for t in range(3):
        rows = set(range(sum(SIZES[:t]), sum(SIZES[: t + 1])))
        assert [k for k in after if k in rows] == [k for k in before if k in rows]
    assert blurred.ends == sharp.ends
    assert any({k // 70 for k in part} == {0, 1} for part in ids(blurred)), "a step with samples of two tasks"


@pytest.mark.parametrize("blur", [0.1, 0.5])
def test_the_share_of_the_next_task_is_its_formula(blur: float) -> None:
    """At a distance d behind the boundary, sigmoid(4 d / (blur m)), where m is the size of the smaller task."""
    sizes, draws = (1200, 800), 400
    shares = np.mean([blurred_order(sizes, blur, Seed(k)) >= 1200 for k in range(draws)], axis=0)
    distance = np.arange(2000) + 0.5 - 1200
    expected = 1 / (1 + np.exp(-4 * distance / (blur * 800)))
    near = np.abs(distance) < 300
    assert np.abs(shares - expected)[near].max() < 4.5 * 0.5 / np.sqrt(draws)
    with_larger = 1 / (1 + np.exp(-4 * distance / (blur * 1200)))
    assert np.abs(shares - with_larger)[near].mean() > 2 * np.abs(shares - expected)[near].mean()


def test_no_blur_is_the_given_order() -> None:
    assert blurred_order(SIZES, 0, Seed(9)).tolist() == list(range(180))


def test_probes_are_those_of_all_tasks_after_each_task() -> None:
    stream = task_stream(periods(), 0, 32, 0, Seed(0))
    probes = AllTaskProbes(periods(), 0, stream.ends)
    due = {k: [probe.name for probe in probes.due(stream[k])] for k in range(len(stream))}
    assert {k: names for k, names in due.items() if names} == {key: ["a", "b", "c"] for key in (2, 4, 6)}
    assert [len(probe.samples) for probe in probes.all()] == [3, 4, 5]
    assert list(probes.due(None)) == []
    assert [probe.name for probe in AllTaskProbes(periods(), 1, stream.ends).all()] == ["b", "c"]
