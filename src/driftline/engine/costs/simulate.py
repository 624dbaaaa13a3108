"""Simulate a plan on a number of workers, by the scheduler's own rule.

A free worker takes the first ready stage. It must start first, and read each dataset once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush


@dataclass(frozen=True)
class SimulatedStage:
    """A stage with its duration."""

    key: str
    seconds: float
    needs: tuple[str, ...] = ()
    data: tuple[str, str] = ("", "")
    """The dataset that it reads."""


@dataclass
class _Worker:
    number: int
    seen: set[tuple[str, str]] = field(default_factory=set)
    started: bool = False

    def duration(self, task: SimulatedStage, start: float, reading: Mapping[tuple[str, str], float]) -> float:
        """Return the seconds until the worker has computed the stage."""
        first = 0.0 if self.started else start
        read = 0.0 if task.data in self.seen else reading.get(task.data, 0.0)
        self.started = True
        self.seen.add(task.data)
        return first + read + task.seconds


def makespan(
    tasks: Sequence[SimulatedStage],
    workers: int,
    start: float = 0.0,
    reading: Mapping[tuple[str, str], float] | None = None,
) -> float:
    """Return the seconds from the first stage to the end of the last; other needs count as done.

    >>> start = SimulatedStage("history", 4.0)
    >>> fits = [start, *(SimulatedStage(f"tune {k}", 2.0, ("history",)) for k in range(4))]
    >>> makespan(fits, 1), makespan(fits, 2), makespan(fits, 8), makespan(fits, 8, start=1.0)
    (12.0, 8.0, 6.0, 8.0)
    """
    waiting, needed_by = _dependencies(tasks)
    ready = [number for number, task in enumerate(tasks) if not waiting[task.key]]  # in order, so it is a heap
    fresh = iter(range(workers))
    idle: list[_Worker] = []
    busy: list[tuple[float, int, int, _Worker]] = []
    now = 0.0
    while ready or busy:
        while ready and (worker := idle.pop() if idle else _new_worker(fresh)):
            number = heappop(ready)
            end = now + worker.duration(tasks[number], start, reading or {})
            heappush(busy, (end, number, worker.number, worker))
        now, number, _, worker = heappop(busy)
        idle.append(worker)
        for other in needed_by[tasks[number].key]:
            waiting[tasks[other].key] -= 1
            if not waiting[tasks[other].key]:
                heappush(ready, other)
    return now


def _new_worker(fresh: Iterator[int]) -> _Worker | None:
    number = next(fresh, None)
    return None if number is None else _Worker(number)


def _dependencies(tasks: Sequence[SimulatedStage]) -> tuple[dict[str, int], dict[str, list[int]]]:
    """Return the number of tasks that each task waits for, and the tasks that wait for it."""
    known = {task.key for task in tasks}
    waiting: dict[str, int] = {}
    needed_by: dict[str, list[int]] = defaultdict(list)
    for number, task in enumerate(tasks):
        needs = {key for key in task.needs if key in known}
        waiting[task.key] = len(needs)
        for key in needs:
            needed_by[key].append(number)
    return waiting, needed_by
