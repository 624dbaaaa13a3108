"""The list of runs by time: status, score and command."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from driftline import registry
from driftline.cli.printing.terminal import echo
from driftline.engine.executors.status import read_statuses
from driftline.errors import DamagedFile
from driftline.record.run import Record, Run
from driftline.report.analysis.estimates import is_share
from driftline.report.analysis.run_command import run_command
from driftline.report.format import NONE, format_value
from driftline.store.run_names import format_time
from driftline.store.store import Store


class RunLine(NamedTuple):
    """A line of the list."""

    time: datetime
    key: str
    status: str
    score: str
    name: str
    command: str = NONE


def print_store_runs(store: Store) -> None:
    """Print the runs of a store, the latest last, and the reasons of the failed ones."""
    lines = _finished(store.record(tables=()).runs)
    failures = store.failures()
    for failure in failures:
        path, run = store.folder / "failed" / f"{failure['key']}.json", failure["run"]
        lines.append(RunLine(_modified(path.stat().st_mtime), failure["key"], "failed", NONE, _name(run)))
    lines += _unfinished(store, {line.key for line in lines})
    if lines:
        _print(lines)
    if not any(line.status == "finished" for line in lines):
        echo(f"no finished run in {store.folder}")
    for failure in failures:
        echo(f"failed: {failure['run']['label']} seed {failure['run']['seed']}: {failure['reason']}")


def print_runs(runs: Iterable[Run]) -> None:
    """Print finished runs, the latest last."""
    _print(_finished(tuple(runs)))


def _print(lines: Iterable[RunLine]) -> None:
    """Print one line per run, without truncation."""
    rows = [("run", "time", "status", "score", "name", "command")]
    rows += [(line.key, format_time(line.time), *line[2:]) for line in sorted(lines)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    padded = ("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)) for row in rows)
    echo("\n".join(line.rstrip() for line in padded))


def _finished(runs: Sequence[Run]) -> list[RunLine]:
    scores = _scores(run for run in runs if _is_scored(run))
    return [
        RunLine(
            run.finished_at,
            run.key,
            "finished",
            scores.get(run.key, NONE),
            f"{run.method}:{run.seed}",
            run_command(run),
        )
        for run in runs
    ]


def _is_scored(run: Run) -> bool:
    """Return whether the scores are intact, and of a benchmark that has a primary metric; one of your own has none."""
    try:
        run.verify(["scores"])
    except DamagedFile:
        return False
    return registry.describe("benchmark", run.common.run.benchmark) is not None


def _scores(runs: Iterable[Run]) -> dict[str, str]:
    """Return the primary metric of each run's benchmark by the run's key."""
    found: dict[str, str] = {}
    of_benchmark: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        of_benchmark[run.common.run.benchmark].append(run)
    for benchmark, members in of_benchmark.items():
        summary = Record(members).summary
        for metric, stat in registry.get("benchmark", benchmark).primary_metrics if len(summary) else ():
            rows = summary[(summary["metric"] == metric) & (summary["stat"] == stat)]
            share = is_share(metric)
            for key, value in zip(rows["run"], rows["value"], strict=True):
                found.setdefault(key, f"{metric} {format_value(float(value), share)}{'%' if share else ''}")
    return found


def _unfinished(store: Store, listed: set[str]) -> list[RunLine]:
    """Return the runs of sweeps that are running, and those that were interrupted."""
    lines: dict[str, RunLine] = {}
    for sweep, seen in read_statuses(store):
        alive = sweep.is_alive(seen, time.time())
        for key, name in sweep.runs.items():
            started = key in sweep.running if alive else store.work_folder(key).exists()
            if started and key not in listed:
                since = sweep.running[key].since if key in sweep.running else seen
                lines[key] = RunLine(_modified(since), key, "running" if alive else "interrupted", NONE, name)
    return list(lines.values())


def _name(run: dict[str, object]) -> str:
    return f"{run['label']}:{run['seed']}"


def _modified(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
