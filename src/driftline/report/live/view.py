"""The state of a sweep, read from the store; nothing is locked or written."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from driftline.engine.executors.status import RunningStage, SweepStatus, read_statuses
from driftline.errors import DamagedFile
from driftline.record.run import Run
from driftline.report.live.sparkline import format_duration, progress_bar, sparkline
from driftline.store.store import Store
from driftline.types import JsonObject

MAX_ROWS = 5  # of failures and interrupted runs
CURVE_WIDTH = 24
BAR_WIDTH = 12  # a row with both should fit into 80 characters

TextRow = tuple[str, str]
"""A name, and the text about it."""


@dataclass(frozen=True)
class LiveView:
    """The view at one moment."""

    lines: tuple[str, ...]
    running: bool
    """Whether any sweep is running."""


def render(store: Store, now: float, height: int = 40, ascii: bool = False) -> LiveView:
    """Return the running sweeps, else the latest, and their runs, in about `height` lines."""
    known = read_statuses(store)
    live = [sweep for sweep, last_seen in known if sweep.is_alive(last_seen, now)]
    visible = live or [sweep for sweep, _ in known[-1:]]
    names = {key: name for sweep, _ in known for key, name in sweep.runs.items()}
    lines = [status_line(sweep, sweep in live, now) for sweep in visible] or [f"no sweep is known in {store.folder}"]
    running = {key: stage for sweep in live for key, stage in sweep.running.items()}
    lines += _section("running", [_running(store, key, stage, now, ascii) for key, stage in running.items()])
    partial = sorted(path for path in (store.folder / "work").glob("*") if path.name not in running)
    partial = [path for path in partial if not store.finished(path.name)]
    interrupted = [(names.get(path.name, path.name), _saved_steps(path)) for path in partial]
    lines += _first_rows("interrupted", interrupted, MAX_ROWS)
    lines += _first_rows("failed", [_failed(failure) for failure in store.failures()], MAX_ROWS)
    keys = _latest(store, [key for sweep in visible for key in sweep.runs] if visible else None)
    rows = max(MAX_ROWS, height - len(lines) - 2)
    done = [_finished(store, key, names.get(key), ascii) for key in keys[:rows]]
    return LiveView((*lines, *_first_rows("finished", done, rows, len(keys))), bool(live))


def status_line(sweep: SweepStatus, live: bool, now: float) -> str:
    """Return a sweep in one line: stages done, running, failed and waiting, and the time left."""
    done, waiting = sweep.reused + sweep.computed, sum(sweep.waiting.values())
    total = done + waiting + len(sweep.running) + len(sweep.failed)
    counts = f"{done} of {total} stages done ({sweep.reused} reused), {len(sweep.failed)} failed"
    if live:
        left = seconds_left(sweep, now)
        time = "time left not known yet" if left is None else f"about {format_duration(left)} left"
        return f"{counts}, {len(sweep.running)} running, {waiting} waiting; {time}"
    unfinished = waiting + len(sweep.running)
    return f"{counts}; " + (f"stopped with {unfinished} to do: the same command resumes" if unfinished else "ended")


def seconds_left(sweep: SweepStatus, now: float) -> float | None:
    """Return the estimated time left: of running stages, and of waiting ones at the mean time of their kind.

    None while a stage is waiting whose kind has never finished.
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


def _left(stage: RunningStage, usual: dict[str, float], now: float) -> float | None:
    if stage.done > stage.first:
        return (stage.total - stage.done) * (now - stage.first_at) / (stage.done - stage.first)
    if stage.kind in usual:
        return max(0.0, usual[stage.kind] - (now - stage.since))
    return None


@lru_cache(maxsize=4096)
def _per_step(path: Path, version: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the sum of correctness and the number of answers of each step; `version` identifies rewritten files."""
    table = pq.read_table(path, columns=["step", "correct"])
    _, place, answered = np.unique(table["step"].to_numpy(), return_inverse=True, return_counts=True)
    return np.bincount(place, weights=table["correct"].to_numpy()), answered


def accuracy_per_step(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return correct answers and all answers per step so far, of a finished or a partial run."""
    found = []
    for path in sorted(folder.glob("answers*.parquet")):
        with suppress(OSError, ValueError):  # a run that finishes now removes its parts
            found.append(_per_step(path, path.stat().st_mtime_ns))
    if not found:
        return np.zeros(0), np.zeros(0)
    correct, answered = zip(*found, strict=True)
    return np.concatenate(correct), np.concatenate(answered)


def _curve(folder: Path, ascii: bool) -> str:
    correct, answered = accuracy_per_step(folder)
    if not len(correct):
        return ""
    return f"{100 * correct.sum() / answered.sum():5.1f} % right  {sparkline(correct, answered, CURVE_WIDTH, ascii)}"


def _running(store: Store, key: str, stage: RunningStage, now: float, ascii: bool) -> TextRow:
    if not stage.total:
        return stage.name, f"for {format_duration(now - stage.since)}"
    left = _left(stage, {}, now)
    parts = [
        f"{progress_bar(stage.done, stage.total, BAR_WIDTH, ascii)} {stage.done:,}/{stage.total:,}",
        "" if left is None else f"{format_duration(left)} left",
        _curve(store.work_folder(key), ascii),
    ]
    return stage.name, "  ".join(part for part in parts if part)


def _saved_steps(folder: Path) -> str:
    correct, _ = accuracy_per_step(folder)
    return f"{len(correct):,} steps are safe" if len(correct) else "no step is safe yet"


def _failed(failure: JsonObject) -> TextRow:
    return f"{failure['run']['label']} seed {failure['run']['seed']}", str(failure["reason"])


def _latest(store: Store, wanted: list[str] | None) -> list[str]:
    """Return the keys of finished runs, the latest first; None for all runs."""
    cards = (store.folder / "runs").glob("*/card.json")
    finished_at = {path.parent.name: path.stat().st_mtime for path in cards}
    keys = finished_at if wanted is None else [key for key in dict.fromkeys(wanted) if key in finished_at]
    return sorted(keys, key=lambda key: -finished_at[key])


def _finished(store: Store, key: str, name: str | None, ascii: bool) -> TextRow:
    if name is None:
        try:
            card = Run(store.run_folder(key)).card
        except DamagedFile as damage:
            return key, f"damaged: {damage.reason}"
        name = f"{card.label} seed {card.run.seed}"
    return name, _curve(store.run_folder(key), ascii)


def _first_rows(title: str, rows: list[TextRow], limit: int, count: int | None = None) -> list[str]:
    """Return a section with its first rows, and the number of further ones."""
    more = (len(rows) if count is None else count) - limit
    return _section(title, rows[:limit]) + ([f"  and {more:,} more"] if more > 0 else [])


def _section(title: str, rows: list[TextRow]) -> list[str]:
    width = max((len(name) for name, _ in rows), default=0)
    return [title, *(f"  {name:<{width}}  {text}".rstrip() for name, text in rows)] if rows else []
