"""How long a plan takes with so many workers."""

from __future__ import annotations

import pytest

from driftline.engine.costs.simulate import SimulatedStage, makespan

DIAMOND = [
    SimulatedStage("a", 3.0),
    SimulatedStage("b", 2.0, ("a",)),
    SimulatedStage("c", 5.0, ("a",)),
    SimulatedStage("d", 1.0, ("b", "c")),
]


@pytest.mark.parametrize(("workers", "seconds"), [(1, 11.0), (2, 9.0), (8, 9.0)])
def test_needs_are_waited_for(workers: int, seconds: float) -> None:
    assert makespan(DIAMOND, workers) == seconds


def test_the_first_stage_that_is_ready_is_taken_first() -> None:
    tasks = [SimulatedStage("short", 1.0), SimulatedStage("long", 4.0), SimulatedStage("other", 4.0)]
    assert makespan(tasks, 2) == 5.0, "short and long at once, then other behind short"


def test_a_worker_starts_once_and_reads_each_dataset_once() -> None:
    tasks = [
        SimulatedStage("a", 1.0, data=("x", "")),
        SimulatedStage("b", 1.0, ("a",), data=("x", "")),
        SimulatedStage("c", 1.0, ("b",), data=("y", "")),
    ]
    assert (
        makespan(tasks, 4, start=10.0, reading={("x", ""): 2.0, ("y", ""): 0.5}) == 10.0 + 2.0 + 1.0 + 1.0 + 0.5 + 1.0
    )


def test_what_is_no_task_is_done() -> None:
    assert makespan([SimulatedStage("b", 2.0, ("done before",))], 1) == 2.0


def test_nothing_takes_no_time() -> None:
    assert makespan([], 8) == 0.0
