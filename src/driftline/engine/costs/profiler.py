"""Profile a stage: compute a part of it, and extrapolate the rest.

The stage runs as usual, in a store of its own, while a `LoopProfiler` samples its loops (see `training.loops`). Of
each loop the first iterations run, then as many, evenly spread, as there is time for; every skipped iteration counts as
its neighbor, in seconds and in multiply-accumulates. Nested loops are sampled in the same way.

Seconds are CPU time, so that other programs on the machine do not count; on an accelerator, seconds by the clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from driftline import device
from driftline.engine.build import DatasetCache
from driftline.engine.stages import Stage, StageContext, StreamRun
from driftline.errors import UserError
from driftline.forward_pass import as_written
from driftline.store.store import Store
from driftline.training import loops

if TYPE_CHECKING:
    from driftline.training.mac_counter import MacCounter

T = TypeVar("T")
MIN_SAMPLES = 2
"""Iterations after the first two of a loop, however slow they are."""
SAMPLES = 4
"""Iterations of a long loop, at least; nested loops get time for that."""
OVERRUN_FACTOR = 3
"""A loop ends when it has taken this many times the time it was given."""
COLD_SECONDS = 1.0
"""A first iteration may take this long for what later ones find ready; only a longer one counts for all."""
COUNTS = ("forward", "backward", "probe_macs", "saved")


@dataclass(frozen=True)
class Cost:
    """The cost of a stage."""

    seconds: float
    macs: int
    bytes: int
    backward: int = 0
    """The part of `macs` for backward passes."""
    error: str = ""
    """Why the stage failed, if it did."""


@dataclass(frozen=True)
class _Usage:
    """Seconds and MACs at a moment, or between two."""

    seconds: float
    counts: tuple[tuple[int, ...], ...]


class LoopProfiler:
    """Samples the loops of one stage, and extrapolates the skipped iterations."""

    def __init__(self, seconds: float) -> None:
        self.shortened = False
        self.extrapolation = 1.0
        """Iterations of the outermost loop per iteration that ran."""
        self._allowed = [seconds]  # for the loop that comes next, and for those around it
        self._began = device.clock()
        self._skipped = 0.0  # seconds of skipped iterations
        self._meters: list[MacCounter] = []

    @property
    def seconds(self) -> float:
        """Seconds that the whole stage would have taken so far."""
        return device.clock() - self._began + self._skipped

    @property
    def macs(self) -> int:
        """MACs that its networks would have computed so far, evaluation included."""
        return sum(meter.forward + meter.backward + meter.probe_macs for meter in self._meters)

    @property
    def backward(self) -> int:
        """The part of the MACs for backward passes."""
        return sum(meter.backward for meter in self._meters)

    def add_counter(self, meter: MacCounter) -> None:
        self._meters.append(meter)

    def sample(self, items: Sequence[T], few: int) -> Iterator[T]:
        n, at, stride, turns, first = len(items), 0, 1, 0, 0.0
        allowed, began = self._allowed[-1], device.clock()
        self._allowed.append(allowed / 2 / max(SAMPLES, n if n <= few else SAMPLES))
        try:
            while at < n:
                mark = self._now()
                yield items[min(at + stride // 2, n - 1)]  # the middle of the items it represents
                turn, stands_for = self._since(mark), min(stride, n - at)
                self._add(turn, stands_for - 1)
                at, turns = at + stands_for, turns + 1
                spent = device.clock() - began
                if turns == 1:
                    first = spent
                elif n > few and turns & (turns - 1) == 0:  # estimate again after 2, 4, 8, ... iterations
                    affordable = (allowed - spent) / ((spent - first) / (turns - 1))
                    stride = max(1, ceil((n - at) / max(affordable, MIN_SAMPLES)))
                if n > few and spent > max(OVERRUN_FACTOR * allowed, COLD_SECONDS if turns == 1 else 0):
                    self._add(turn, n - at)
                    at = n
        except GeneratorExit:  # the loop ended early, which means nothing if iterations were left out
            if self.shortened:
                self._add(self._since(mark), n - at - 1)
        finally:
            self._allowed.pop()
            if len(self._allowed) == 1:
                self.extrapolation = n / max(turns, 1)

    def _now(self) -> _Usage:
        counts = tuple(tuple(getattr(meter, name) for name in COUNTS) for meter in self._meters)
        counting = sum(meter.counting_seconds for meter in self._meters)
        return _Usage(self.seconds - counting, counts)

    def _since(self, mark: _Usage) -> _Usage:
        now = self._now()
        before = (*mark.counts, *[(0,) * len(COUNTS)] * (len(now.counts) - len(mark.counts)))
        spent = (tuple(b - a for a, b in zip(*pair, strict=True)) for pair in zip(before, now.counts, strict=True))
        return _Usage(now.seconds - mark.seconds, tuple(spent))

    def _add(self, turn: _Usage, times: int) -> None:
        """Count an iteration `times` more."""
        if times < 1:
            return
        self.shortened = True
        self._skipped += times * turn.seconds
        for meter, counts in zip(self._meters, turn.counts, strict=False):
            for name, count in zip(COUNTS, counts, strict=True):
                setattr(meter, name, getattr(meter, name) + times * count)


def profile_stage(stage: Stage, store: Store, datasets: DatasetCache, seconds: float) -> Cost:
    """Return the cost of a stage after computing part of it for about `seconds`.

    What it writes to the store is a stand-in for the result.
    """
    with device.use(stage.device), as_written():
        return _profile(stage, store, datasets, LoopProfiler(seconds))


def _profile(stage: Stage, store: Store, datasets: DatasetCache, profiler: LoopProfiler) -> Cost:
    error = ""
    with loops.use(profiler.sample):
        try:
            stage.run(StageContext(store, datasets, profiler=profiler))
        except Exception as failure:  # in half a record, for one, some metrics are not defined
            reason = str(failure) if isinstance(failure, UserError) else f"{type(failure).__name__}: {failure}"
            error = "" if profiler.shortened else reason
        taken = profiler.seconds
    forward, backward = stage.included_macs(store)
    size = result_size(stage, store) * (profiler.extrapolation if isinstance(stage, StreamRun) else 1)
    macs, back = max(profiler.macs - forward - backward, 0), max(profiler.backward - backward, 0)
    return Cost(taken, macs, int(size), back, error)


def result_size(stage: Stage, store: Store) -> int:
    """Return the bytes of a stage's result; of a run that could not be scored, those of its tables."""
    return disk_usage(store.folder / stage.result_name) or disk_usage(store.work_folder(stage.key) / "final")


def disk_usage(path: Path) -> int:
    """Return the bytes of a file, or of all files in a folder."""
    if path.is_dir():
        return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    return path.stat().st_size if path.exists() else 0
