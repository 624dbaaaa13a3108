"""A sweep as it stands, read from the store alone: nothing is locked, written or waited for."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from driftline.engine.executors.status import Running, SweepStatus, sweeps
from driftline.errors import Damaged
from driftline.record import Run
from driftline.report.terminal import bar, span, spark
from driftline.store import Store

FEW = 5  # failures and interrupted runs that are named
WIDTH = 24  # letters of a curve
BAR = 12  # and of a bar: a line with both should fit into 80

Line = tuple[str, str]
"""What is told of something, and before it what."""


@dataclass(frozen=True)
class Picture:
    """What there is to see at one moment."""

    lines: tuple[str, ...]
    running: bool
    """Whether any sweep goes on."""


def picture(store: Store, now: float, height: int = 40, plain: bool = False) -> Picture:
    """The sweeps that go on, else the latest, and the runs they are about; in about `height` lines."""
    known = sweeps(store)
    live = [sweep for sweep, heard in known if sweep.is_alive(heard, now)]
    shown = live or [sweep for sweep, _ in known[-1:]]
    names = {key: name for sweep, _ in known for key, name in sweep.runs.items()}
    lines = [headline(sweep, sweep in live, now) for sweep in shown] or [f"no sweep is known in {store.folder}"]
    running = {key: stage for sweep in live for key, stage in sweep.running.items()}
    lines += _section("running", [_running(store, key, stage, now, plain) for key, stage in running.items()])
    left = sorted(path for path in (store.folder / "work").glob("*") if path.name not in running)
    left = [path for path in left if not store.finished(path.name)]
    lines += _few("interrupted", [(names.get(path.name, path.name), _reached(path)) for path in left], FEW)
    lines += _few("failed", [_failed(failure) for failure in store.failures()], FEW)
    keys = _latest(store, [key for sweep in shown for key in sweep.runs] if shown else None)
    room = max(FEW, height - len(lines) - 2)
    done = [_finished(store, key, names.get(key), plain) for key in keys[:room]]
    return Picture((*lines, *_few("finished", done, room, len(keys))), bool(live))


def headline(sweep: SweepStatus, live: bool, now: float) -> str:
    """A sweep in one line: how many stages are done, running, failed and waiting, and how long it may still take."""
    done, waiting = sweep.reused + sweep.computed, sum(sweep.waiting.values())
    total = done + waiting + len(sweep.running) + len(sweep.failed)
    told = f"{done} of {total} stages done ({sweep.reused} reused), {len(sweep.failed)} failed"
    if live:
        left = seconds_left(sweep, now)
        when = "time left not known yet" if left is None else f"about {span(left)} left"
        return f"{told}, {len(sweep.running)} running, {waiting} waiting; {when}"
    unfinished = waiting + len(sweep.running)
    return f"{told}; " + (f"stopped with {unfinished} to do: the same command resumes" if unfinished else "ended")


def seconds_left(sweep: SweepStatus, now: float) -> float | None:
    """What is left of the running stages, and the waiting ones at the mean time of their kind, shared by those running.

    None while a kind of stage is waiting of which nothing is known.
    """
    total = 0.0
    usual = {kind: seconds / count for kind, (count, seconds) in sweep.durations.items()}
    for stage in sweep.running.values():
        left = _left(stage, usual, now)
        if left is None:
            return None
        usual.setdefault(stage.kind, now - stage.since + left)
        total += left
    for kind, count in sweep.waiting.items():
        if count and kind not in usual:
            return None
        total += count * usual.get(kind, 0.0)
    return total / max(1, len(sweep.running))


def _left(stage: Running, usual: dict[str, float], now: float) -> float | None:
    if stage.done > stage.first:
        return (stage.of - stage.done) * (now - stage.first_at) / (stage.done - stage.first)
    if stage.kind in usual:
        return max(0.0, usual[stage.kind] - (now - stage.since))
    return None


@lru_cache(maxsize=4096)
def _per_step(path: Path, version: int) -> tuple[np.ndarray, np.ndarray]:
    """Of each step in a file of answers: how right they were in sum, and how many; `version` tells rewritten files."""
    table = pq.read_table(path, columns=["step", "correct"])
    _, place, asked = np.unique(table["step"].to_numpy(), return_inverse=True, return_counts=True)
    return np.bincount(place, weights=table["correct"].to_numpy()), asked


def course(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Right answers and answers per step so far, of a finished run or one on its way."""
    found = []
    for path in sorted(folder.glob("answers*.parquet")):
        with suppress(OSError, ValueError):  # a run that ends at this moment takes its parts away
            found.append(_per_step(path, path.stat().st_mtime_ns))
    if not found:
        return np.zeros(0), np.zeros(0)
    right, asked = zip(*found, strict=True)
    return np.concatenate(right), np.concatenate(asked)


def _curve(folder: Path, plain: bool) -> str:
    right, asked = course(folder)
    if not len(right):
        return ""
    return f"{100 * right.sum() / asked.sum():5.1f} % right  {spark(right, asked, WIDTH, plain)}"


def _running(store: Store, key: str, stage: Running, now: float, plain: bool) -> Line:
    if not stage.of:
        return stage.name, f"for {span(now - stage.since)}"
    left = _left(stage, {}, now)
    told = [
        f"{bar(stage.done, stage.of, BAR, plain)} {stage.done:,}/{stage.of:,}",
        "" if left is None else f"{span(left)} left",
        _curve(store.work_folder(key), plain),
    ]
    return stage.name, "  ".join(part for part in told if part)


def _reached(folder: Path) -> str:
    right, _ = course(folder)
    return f"{len(right):,} steps are safe" if len(right) else "no step is safe yet"


def _failed(failure: dict[str, Any]) -> Line:
    return f"{failure['run']['label']} seed {failure['run']['seed']}", str(failure["reason"])


def _latest(store: Store, wanted: list[str] | None) -> list[str]:
    """Keys of finished runs, those that finished last first; None wants all."""
    cards = (store.folder / "runs").glob("*/card.json")
    when = {path.parent.name: path.stat().st_mtime for path in cards}
    keys = when if wanted is None else [key for key in dict.fromkeys(wanted) if key in when]
    return sorted(keys, key=lambda key: -when[key])


def _finished(store: Store, key: str, name: str | None, plain: bool) -> Line:
    if name is None:
        try:
            card = Run(store.run_folder(key)).card
        except Damaged as damage:
            return key, f"damaged: {damage.reason}"
        name = f"{card['label']} seed {card['run']['seed']}"
    return name, _curve(store.run_folder(key), plain)


def _few(title: str, lines: list[Line], most: int, count: int | None = None) -> list[str]:
    """A section with the first of its lines, and how many more there are."""
    more = (len(lines) if count is None else count) - most
    return _section(title, lines[:most]) + ([f"  and {more:,} more"] if more > 0 else [])


def _section(title: str, lines: list[Line]) -> list[str]:
    width = max((len(name) for name, _ in lines), default=0)
    return [title, *(f"  {name:<{width}}  {told}".rstrip() for name, told in lines)] if lines else []
