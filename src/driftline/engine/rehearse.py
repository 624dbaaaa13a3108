"""What a stage costs, found out by performing a part of it.

The stage runs as it would in earnest, in a store of its own, while a `Rehearsal` listens to its loops (see
`training.pulse`). Of each loop it lets the first turns pass and then as many, evenly spread, as there is time for;
every turn left out is taken to cost what its neighbour did, in seconds and in multiply-accumulates. Loops within loops
are reckoned in the same way, so a stage ends after a moment and its whole bill is known.

Seconds are the processor's: other programs on the machine do not count.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from driftline.engine.sharing import billed
from driftline.engine.stages import Stage, perform
from driftline.errors import UserError
from driftline.store import Store
from driftline.training import pulse

if TYPE_CHECKING:
    from driftline.training.meter import Meter

T = TypeVar("T")
LEAST = 2
"""After the first two turns of a loop so many are spread over the rest, however slow they are."""
SAMPLE = 4
"""A long loop is reckoned with so many turns or more, and gives the loops within it time for that."""
PATIENCE = 3
"""A loop ends when it has taken so many times what it was allowed."""
COUNTS = ("forward", "backward", "examinations", "spared")


@dataclass(frozen=True)
class Cost:
    """What a stage takes."""

    seconds: float
    macs: int
    bytes: int
    backward: int = 0
    """How much of `macs` goes to backward passes."""
    around: float = 0.0
    """How many of the seconds were spent outside all loops."""
    trouble: str = ""
    """Why it broke off, if it did."""


@dataclass(frozen=True)
class _Bill:
    """Seconds and counts at a moment, or between two."""

    seconds: float
    counts: tuple[tuple[int, ...], ...]


class Rehearsal:
    """Listens to the loops of one stage, and leaves out what can be reckoned."""

    def __init__(self, seconds: float) -> None:
        self.shortened = False
        self.stretch = 1.0
        """How many turns of the outermost loop one that was made stands for."""
        self._allowed = [seconds]  # for the loop that comes next, and for those around it
        self._began = time.process_time()
        self._reckoned = 0.0  # seconds of what was left out
        self._apart = 0.0
        self._in_loops = 0.0
        self._meters: list[Meter] = []

    @property
    def seconds(self) -> float:
        """What the stage would have taken so far."""
        return time.process_time() - self._began + self._reckoned

    @property
    def around(self) -> float:
        """Those of them that were spent outside all loops."""
        return time.process_time() - self._began - self._in_loops

    @property
    def macs(self) -> int:
        """What its networks would have computed so far, examinations included."""
        return sum(meter.forward + meter.backward + meter.examinations for meter in self._meters)

    @property
    def backward(self) -> int:
        """The part of it that went to backward passes."""
        return sum(meter.backward for meter in self._meters)

    def attached(self, meter: Meter) -> None:
        self._meters.append(meter)

    def apart(self, seconds: float) -> None:
        self._apart += seconds

    def each(self, items: Sequence[T], few: int) -> Iterator[T]:
        n, at, stride, turns, first = len(items), 0, 1, 0, 0.0
        allowed, began = self._allowed[-1], time.process_time()
        self._allowed.append(allowed / 2 / max(SAMPLE, n if n <= few else SAMPLE))
        try:
            while at < n:
                mark = self._now()
                yield items[min(at + stride // 2, n - 1)]  # the middle of those it stands for
                turn, stands_for = self._since(mark), min(stride, n - at)
                self._add(turn, stands_for - 1)
                at, turns = at + stands_for, turns + 1
                spent = time.process_time() - began
                if turns == 1:
                    first = spent
                elif n > few and turns & (turns - 1) == 0:  # see anew after 2, 4, 8 turns and so on
                    affordable = (allowed - spent) / ((spent - first) / (turns - 1))
                    stride = max(1, ceil((n - at) / max(affordable, LEAST)))
                if n > few and spent > PATIENCE * allowed:
                    self._add(turn, n - at)
                    at = n
        except GeneratorExit:  # the loop was left; where it was not gone through as in earnest, that means nothing
            if self.shortened:
                self._add(self._since(mark), n - at - 1)
        finally:
            self._allowed.pop()
            if len(self._allowed) == 1:
                self._in_loops += time.process_time() - began
                self.stretch = n / max(turns, 1)

    def _now(self) -> _Bill:
        counts = tuple(tuple(getattr(meter, name) for name in COUNTS) for meter in self._meters)
        return _Bill(self.seconds - self._apart, counts)

    def _since(self, mark: _Bill) -> _Bill:
        now = self._now()
        before = (*mark.counts, *[(0,) * len(COUNTS)] * (len(now.counts) - len(mark.counts)))
        spent = (tuple(b - a for a, b in zip(*pair, strict=True)) for pair in zip(before, now.counts, strict=True))
        return _Bill(now.seconds - mark.seconds, tuple(spent))

    def _add(self, turn: _Bill, times: int) -> None:
        """Put what a turn took on the bill, so many times more."""
        if times < 1:
            return
        self.shortened = True
        self._reckoned += times * turn.seconds
        for meter, counts in zip(self._meters, turn.counts, strict=False):
            for name, count in zip(COUNTS, counts, strict=True):
                setattr(meter, name, getattr(meter, name) + times * count)


def rehearse(stage: Stage, store: Store, where: Path | None, seconds: float) -> Cost:
    """The cost of a stage, from performing it in about so many seconds. What it leaves in the store is a stand-in."""
    heard, trouble = Rehearsal(seconds), ""
    with pulse.heard_by(heard):
        try:
            perform(stage, store, where)
        except Exception as error:  # in half a record, for one, some metrics are not defined
            reason = str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
            trouble = "" if heard.shortened else reason
        taken, around = heard.seconds, heard.around
    forward, backward = billed(stage, store) if stage.is_run else (0, 0)
    size = _size(stage, store) * (heard.stretch if stage.is_run else 1)
    macs, back = max(heard.macs - forward - backward, 0), max(heard.backward - backward, 0)
    return Cost(taken, macs, int(size), back, around, trouble)


def _size(stage: Stage, store: Store) -> int:
    """Bytes that a stage left; of a run that could not be scored, what lies ready."""
    if not stage.is_run:
        return size_of(store.stage_path(stage.key))
    return size_of(store.run_folder(stage.key)) or size_of(store.work_folder(stage.key) / "final")


def size_of(path: Path) -> int:
    """Bytes of a file, or of all files in a folder."""
    if path.is_dir():
        return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    return path.stat().st_size if path.exists() else 0
