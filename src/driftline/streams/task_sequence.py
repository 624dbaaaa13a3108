"""Tasks one after another, in steps of a whole task or of some samples, with sharp or blurred boundaries.

At a boundary with blur, position t takes a sample of the next task with probability sigmoid(4 (t - n) / (blur m)),
where n is the boundary and m the size of the smaller of its two tasks: the rule of CapyMOA's task-free streams. Each
sample comes once, and the samples of a task keep their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from driftline.seeds import Seed
from driftline.streams.timeline import Periods
from driftline.types import Probe, Samples, Step


@dataclass(frozen=True, eq=False)
class TaskStream:
    """A sequence of tasks in steps."""

    samples: Samples
    """In the order of the stream."""
    names: tuple[str, ...]
    """The task of each step; with blur, the task that would be there without."""
    starts: tuple[int, ...]
    """The first sample of each step, and at last the number of samples."""
    ends: tuple[int, ...]
    """The last step of each task."""

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, index: int) -> Step:
        index = range(len(self))[index]
        return Step(index, self.names[index], self.samples[self.starts[index] : self.starts[index + 1]])


@dataclass(frozen=True)
class AllTaskProbes:
    """Probes on the held-out part of every task, after each task."""

    tasks: Periods
    first: int
    """The first task that is tested on."""
    ends: tuple[int, ...]
    """The steps after which there are probes."""

    def all(self) -> tuple[Probe, ...]:
        """Return the probes."""
        each = zip(self.tasks.names, self.tasks.held_out, strict=True)
        return tuple(Probe(name, samples) for name, samples in each)[self.first :]

    def due(self, step: Step | None) -> Iterable[Probe]:
        return self.all() if step is not None and step.index in self.ends else ()


def task_stream(tasks: Periods, first: int, step_size: int | None, blur: float, seed: Seed) -> TaskStream:
    """Return the stream of the tasks from `first` on, each in random order, in steps of at most `step_size` samples."""
    parts = []
    for name, samples in zip(tasks.names[first:], tasks.revealed[first:], strict=True):
        parts.append(samples[seed.child("order", name).numpy().permutation(len(samples))])
    sizes = [len(part) for part in parts]
    samples = Samples.concat(parts)
    if blur:
        # a step may have samples of two tasks, whose times are not in order
        samples = replace(samples, time=None, known=None)[blurred_order(sizes, blur, seed.child("blur"))]
    names: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    for k, (size, offset) in enumerate(zip(sizes, np.cumsum([0, *sizes[:-1]]).tolist(), strict=True)):
        inside = range(offset, offset + size, step_size or size)
        starts += inside
        names += [tasks.names[first + k]] * len(inside)
        ends.append(len(starts) - 1)
    return TaskStream(samples, tuple(names), (*starts, sum(sizes)), tuple(ends))


def blurred_order(sizes: Sequence[int], blur: float, seed: Seed) -> np.ndarray:
    """Return the places of all samples in the order of the stream.

    Places move by logistic noise, so that at a distance d behind a boundary the share of the next task is
    sigmoid(d / scale); then the samples of each task take its places in their own order.

    >>> blurred_order([3, 2], 0, Seed(0)).tolist()
    [0, 1, 2, 3, 4]
    """
    n, owner = sum(sizes), np.repeat(np.arange(len(sizes)), sizes)
    boundaries = np.cumsum(sizes)[:-1]
    smaller = np.minimum(sizes[:-1], sizes[1:])
    nearest = np.abs(np.arange(n)[:, None] + 0.5 - boundaries).argmin(axis=1)
    moved = np.arange(n) + seed.numpy().logistic(size=n) * blur * smaller[nearest] / 4
    order = owner[np.argsort(moved, kind="stable")]
    places = np.empty(n, np.int64)
    places[np.argsort(order, kind="stable")] = np.arange(n)
    return places
