"""Export of finished runs: every exporter receives the same rows."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar, Protocol

import pandas as pd

from driftline import registry
from driftline.errors import UserError
from driftline.exports.rows import run_rows
from driftline.record.run import Run


class Exporter(Protocol):
    """A tool or file format to which runs are exported, one after another."""

    has_server: ClassVar[bool]
    """Whether runs can be sent to a server; other exporters only write files."""
    view_command: ClassVar[str]
    """The command that shows what was written; {folder} is replaced by the output folder."""

    def begin(self, run: Run) -> bool:
        """Start a run; return False if it is exported already and nothing more is needed."""

    def log(self, rows: pd.DataFrame) -> None:
        """Write numbers of the current run, with the columns of `driftline.exports.rows.COLUMNS`."""

    def end(self) -> None:
        """Finish the current run."""


def create(name: str, folder: Path, online: bool = False) -> Exporter:
    """Return the exporter with this name. It sends data to a server only if `online`."""
    kind = registry.get("exporter", name)
    if online and not kind.has_server:
        raise UserError(f"{name} has no server, it only writes files: omit --online")
    exporter: Exporter = kind(folder, online)
    return exporter


def export(runs: Iterable[Run], exporter: Exporter) -> tuple[int, int]:
    """Export runs; return how many were written and how many were exported before."""
    written = existing = 0
    for run in {run.key: run for run in runs}.values():
        if not exporter.begin(run):
            existing += 1
            continue
        exporter.log(run_rows(run))
        exporter.end()
        written += 1
    return written, existing
