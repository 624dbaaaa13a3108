"""Names of runs: find the run that a user means, and describe the candidates."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from driftline.record.run import Run

MAX_LISTED = 10  # candidates that an error lists


def matches(name: str, key: str, label: str, method: str, seed: int) -> bool:
    """Return whether a name matches a run: the start of its key, METHOD, or METHOD:SEED.

    >>> matches("er:0", "5d1f", "er(lr=0.01)", "er", 0)
    True
    """
    return key.startswith(name) or name in (label, f"{label}:{seed}", method, f"{method}:{seed}")


def format_time(moment: datetime) -> str:
    """Return a date and time of day in the user's time zone."""
    return f"{moment.astimezone():%Y-%m-%d %H:%M}"


def short_hash(content: str) -> str:
    """Return the first letters of a hash."""
    return content[:7]


def _describe_origin(run: Run) -> str:
    """Return when a run was made, and with which versions of a user's files."""
    files = (f" with {name} {short_hash(content)}" for name, content in run.common.user_files.items())
    return f"made {format_time(run.finished_at)}{','.join(files)}"


def ambiguity_message(name: str, folder: Path, runs: Sequence[Run], matching: Sequence[Run]) -> str:
    """Return the error for a name that matches no run or several, with the candidates."""
    what = f"{len(matching)} runs in {folder} can be called" if matching else f"no finished run in {folder} is called"
    among = sorted(matching or runs, key=lambda run: (run.common.label, run.seed))
    named = [
        f"{run.key[:12]} ({run.common.label}:{run.seed} in {run.common.run.benchmark}, "
        f"{run.common.run.data.display_name}, {run.common.run.model.display_name}, {_describe_origin(run)})"
        for run in among[:MAX_LISTED]
    ]
    more = f" and {len(among) - MAX_LISTED} more, see `driftline list runs`" if len(among) > MAX_LISTED else ""
    which = f": {'; '.join(named)}{more}" if named else ""
    return f"{what} '{name}'; give a key, its first letters, METHOD or METHOD:SEED{which}"
