"""`driftline export`: write finished runs in the formats of other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from driftline.cli.options import Runs, RunsFolder
from driftline.cli.printing.terminal import echo


def export(
    names: Runs = None,
    to: Annotated[str, typer.Option(help="csv, parquet, tensorboard, mlflow or wandb.")] = "csv",
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="The folder to write to. [default: driftline-NAME]")
    ] = None,
    online: Annotated[
        bool, typer.Option("--online", help="With mlflow or wandb: send runs to the configured server.")
    ] = False,
    runs: RunsFolder = None,
) -> None:
    """Export finished runs to other tools.

    Scores over time, final scores, diagnostics, settings and cards. Exporting a run again does not duplicate it.
    """
    from driftline import exports
    from driftline.cli.select_runs import select_runs

    record = select_runs(names, runs)
    folder = output or Path(f"driftline-{to}")
    exporter = exports.create(to, folder, online)
    written, existing = exports.export(record.runs, exporter)
    already = f", {existing} exported before" if existing else ""
    echo(f"{written} run(s) exported{already}" if online else f"{written} run(s) exported to {folder}{already}")
    if not online:
        echo(f"next: {exporter.view_command.format(folder=folder)}")
