"""Printing of runs and results."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

import pandas as pd
from rich.markup import escape
from rich.table import Table

from driftline.cli.printing.console import SafeConsole
from driftline.cli.printing.draw_table import draw
from driftline.cli.printing.forecast import format_duration
from driftline.cli.printing.terminal import echo
from driftline.errors import DamagedFile
from driftline.io.checksums import read_checked
from driftline.io.sanitize import escape_control
from driftline.record.card import Card, flatten
from driftline.record.run import RUNTIME, Record, Run
from driftline.report.tables.cache import MIN_RUNS, cached_results
from driftline.store.run_names import matches, short_hash
from driftline.store.store import Store
from driftline.types import JsonObject

if TYPE_CHECKING:
    from driftline.engine.costs.sharing import Sharing
    from driftline.engine.executors.base import RunSummary
    from driftline.engine.stages import Stage

MAX_NAMED = 5  # stages that a line names
SKIPPED = "search run(s) skipped because the winner was certain without them"
console = SafeConsole(highlight=False)


def print_run(store: Store, name: str) -> None:
    """Print a run's summary scores and its card; for a failed run, the reason."""
    failed = [one for one in store.failures() if _failure_matches(name, one)]
    runs = store.record(tables=()).runs if failed else ()
    if failed and not any(matches(name, one.key, one.method, one.card.run.method.name, one.seed) for one in runs):
        console.print(f"failed: {failed[0]['reason']}\n\n{failed[0]['traceback']}", markup=False)
        return
    run = store.find(name)
    scores = run.table("scores")
    summary = scores[scores["stat"] != "each"].drop(columns=["time", "tau"])
    console.print(summary.to_string(index=False, float_format="%.4f"), markup=False, soft_wrap=True)
    with suppress(DamagedFile):
        console.print(_duration(read_checked(run.folder / RUNTIME)), markup=False, soft_wrap=True)
    console.print(json.dumps(run.card.to_dict(), indent=1), markup=False, soft_wrap=True)


def _duration(runtime: JsonObject) -> str:
    """Return how long a run took, and for how much of it the method waited for its data.

    >>> _duration({"seconds": 20.0, "waited_for_data": 5.0})
    'took 20.0 s; the method waited for data 25 % of the time'
    """
    seconds, waited = runtime["seconds"], runtime["waited_for_data"]
    took = f"took {format_duration(seconds)}"
    return f"{took}; the method waited for data {100 * waited / seconds:.0f} % of the time" if waited else took


def _failure_matches(name: str, failure: JsonObject) -> bool:
    run = failure["run"]
    return matches(name, failure["key"], run["label"], run["method"]["name"], run["seed"])


def print_difference(first: Run, second: Run) -> None:
    """Print the entries that differ between two cards, then the summary scores side by side."""
    one, other = _comparable(first.card), _comparable(second.card)
    table = Table("what", first.key, second.key, box=None, pad_edge=False)
    for key in sorted(one.keys() | other.keys()):
        if one.get(key) != other.get(key):
            cells = (key, one.get(key, "absent"), other.get(key, "absent"))
            table.add_row(*(escape(escape_control(str(cell))) for cell in cells))
    console.print(table if table.row_count else "the cards are the same")
    console.print()
    scores = pd.concat([_summary_scores(first), _summary_scores(second)], axis=1, keys=["first", "second"])
    both = scores.assign(difference=scores["second"] - scores["first"])
    console.print(both.to_string(float_format="%.4f"), markup=False, soft_wrap=True)


def _comparable(card: Card) -> JsonObject:
    """Return a card as flat entries, with short hashes of user files and without those of the run's tables."""
    entries = {key: value for key, value in card.to_dict().items() if key not in ("key", "label", "files")}
    files = {name: short_hash(content) for name, content in card.user_files.items()}
    return flatten({**entries, "user_files": files})


def print_summary(record: Record, store: Store, summary: RunSummary) -> None:
    """Print the result table after a run, and what to do next."""
    if len(record) and console.is_terminal and len(record) < MIN_RUNS:
        from driftline.report.tables.result import result_tables  # imports scipy, which a cached table does not need

        draw(result_tables(record), console)
    elif len(record):
        console.print(cached_results(record, store), markup=False, soft_wrap=True)
    next_step = f"; kept in {store.name}. Next: driftline report --runs {shlex.quote(store.name)}"
    console.print(count_text(summary) + (next_step if len(record) else ""), markup=False, soft_wrap=True)


def count_text(summary: RunSummary) -> str:
    """Return the numbers of computed, reused, failed, skipped and retried stages."""
    counts = f"{len(summary.computed)} stage(s) computed, {len(summary.reused)} reused, {len(summary.failed)} failed"
    if summary.skipped:
        counts += f", {len(summary.skipped)} {SKIPPED}"
    if summary.failed_candidates:
        counts += f", {len(summary.failed_candidates)} search run(s) failed"
    if summary.retried:
        counts += f", {len(summary.retried)} tried again because a worker was lost"
    return counts


def print_logs(store: Store, summary: RunSummary) -> None:
    """Print where the output of stages is."""
    logged = [stage for stage in summary.computed if store.log_path(stage.key).exists()]
    if logged:
        console.print(
            f"{len(logged)} stage(s) printed output, e.g. {store.log_path(logged[0].key)}",
            markup=False,
            soft_wrap=True,
        )


def print_failures(summary: RunSummary, stages: Iterable[Stage], store: Store) -> None:
    """Print failed stages by name and reason, and how to see a traceback."""
    names = {stage.key: stage.title for stage in stages}
    _print_failures("failed", summary.failed, names)
    _print_failures("failed search run", summary.failed_candidates, names)
    shown = [key for key in (*summary.failed, *summary.failed_candidates) if store.failure(key)]
    if shown:
        echo(f"see its traceback: driftline show {shown[0][:12]} --runs {shlex.quote(store.name)}", err=True)


def _print_failures(label: str, failed: Mapping[str, str], names: Mapping[str, str]) -> None:
    """Print one line per reason."""
    for reason in dict.fromkeys(failed.values()):
        stages = [names[key] for key, why in failed.items() if why == reason]
        more = f" and {len(stages) - MAX_NAMED} more" if len(stages) > MAX_NAMED else ""
        echo(f"{label}: {', '.join(stages[:MAX_NAMED])}{more}: {reason}", err=True)


def print_sharing(sharing: Sharing | None) -> None:
    """Print the savings from fits that runs and search runs share."""
    if sharing is not None and sharing.fits < sharing.fits_without_reuse:
        console.print(sharing.describe("saved"), markup=False, soft_wrap=True)


def _summary_scores(run: Run) -> pd.Series:
    scores = run.table("scores")
    return scores[scores["stat"] != "each"].set_index(["metric", "stat"])["value"]
