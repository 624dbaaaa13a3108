"""`driftline remove`: remove runs from a store."""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from driftline.cli.options import RunsFolder
from driftline.cli.printing.terminal import echo
from driftline.errors import UserError

if TYPE_CHECKING:
    from driftline.record.run import Run
    from driftline.store.store import Store

UNITS = {"h": "hours", "d": "days", "w": "weeks"}


def remove(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[RUN]...", help="Runs: keys, the beginnings of keys, or METHOD:SEED.")
    ] = None,
    older_than: Annotated[
        str | None, typer.Option(help="All runs made longer ago than this: 12h, 30d or 8w.", metavar="AGE")
    ] = None,
    superseded: Annotated[
        bool, typer.Option("--superseded", help="All runs made with an older version of one of your own files.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Remove them without asking.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list what would be removed.")] = False,
    runs: RunsFolder = None,
) -> None:
    """Remove runs, after listing them. Stages that runs share, such as upstream models, stay."""
    from driftline.store import check
    from driftline.store.store import Store

    if bool(names) + (older_than is not None) + superseded != 1:
        raise UserError("name the runs to remove, or give --older-than AGE or --superseded")
    store = Store.open(runs)
    found = _select(store, names or [], older_than)
    if not found:
        echo(f"{store.name}: no run to remove")
        return
    from driftline.cli.printing.run_list import print_runs

    print_runs(found)
    if dry_run:
        echo(f"{len(found)} run(s) would be removed from {store.name}")
        return
    if not yes and not _confirm(f"Remove {len(found)} run(s) from {store.name}?"):
        echo("nothing was removed")
        return
    for run in found:
        check.remove(store, f"runs/{run.folder.name}")
        check.remove(store, f"labels/{run.folder.name}.json")
        store.log_path(run.folder.name).unlink(missing_ok=True)
    echo(f"{len(found)} run(s) removed from {store.name}")


def _select(store: Store, names: list[str], older_than: str | None) -> list[Run]:
    """Return the runs that are named, too old, or superseded; the last two include search runs."""
    from driftline.record.run import drop_damaged
    from driftline.report.analysis.groups import older_versions

    if names:
        found = {run.folder.resolve(): run for run in map(store.find, names)}
        for folder in found:
            if folder.parent != (store.folder / "runs").resolve():
                raise UserError(f"{folder} is not in {store.name}: name its store with --runs")
        return list(found.values())
    runs = drop_damaged(store.runs(), tables=())
    if older_than is not None:
        since = datetime.now(UTC) - parse_age(older_than)
        return [run for run in runs if run.finished_at < since]
    older = older_versions(runs)
    return [run for run in runs if run.key in older]


def parse_age(text: str) -> timedelta:
    """Return the duration that a text such as 12h, 30d or 8w means.

    >>> parse_age("36h"), parse_age("8w")
    (datetime.timedelta(days=1, seconds=43200), datetime.timedelta(days=56))
    """
    match = re.fullmatch(r"(\d{1,5})([hdw])", text.strip())
    if match is None:
        raise UserError(f"--older-than {text}: write hours, days or weeks as 12h, 30d or 8w")
    return timedelta(**{UNITS[match[2]]: int(match[1])})


def _confirm(question: str) -> bool:
    if not sys.stdin.isatty():
        raise UserError(f"{question} Add --yes to remove them, or --dry-run to only list them")
    return typer.confirm(question)
