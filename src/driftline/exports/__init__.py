"""Finished runs as other tools keep them: every sink is fed the same rows, one file per sink.

A sink is registered as `@register("sink", NAME)`; putting its file into this room is all it takes to add one.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar, Protocol

import pandas as pd

from driftline import registry
from driftline.errors import UserError
from driftline.exports.rows import rows_of
from driftline.record import Run

__all__ = ["Sink", "export", "make"]


class Sink(Protocol):
    """Somewhere that runs can be told about, one after another."""

    can_send: ClassVar[bool]
    """Whether there is a server that it could send to; the others only write files."""
    look: ClassVar[str]
    """How a user looks at what was written; {folder} is where."""

    def __init__(self, folder: Path, online: bool) -> None: ...

    def begin(self, run: Run) -> bool:
        """Start with a run; False if it is there already, so that nothing needs to be said of it."""

    def log(self, rows: pd.DataFrame) -> None:
        """Numbers of the run that was begun, with the columns of `driftline.exports.rows.COLUMNS`."""

    def end(self) -> None:
        """All has been said of this run."""


def make(name: str, folder: Path, online: bool = False) -> Sink:
    """The sink with this name; nothing leaves the machine unless `online` is asked for."""
    kind: type[Sink] = registry.get("sink", name)
    if online and not kind.can_send:
        raise UserError(f"{name} only writes files: leave --online out")
    return kind(folder, online)


def export(runs: Iterable[Run], sink: Sink) -> tuple[int, int]:
    """Tell a sink about runs; how many were written, and how many were there already."""
    written = kept = 0
    for run in {run.key: run for run in runs}.values():
        if not sink.begin(run):
            kept += 1
            continue
        sink.log(rows_of(run))
        sink.end()
        written += 1
    return written, kept
