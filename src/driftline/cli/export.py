"""`driftline export`: finished runs for the tools that a team keeps its experiments in."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from driftline.cli.places import RunsFolder
from driftline.cli.terminal import echo


def export(
    runs_given: Annotated[
        list[str] | None, typer.Argument(metavar="[RUNS]", help="Keys of runs, or a folder of runs. [default: all]")
    ] = None,
    to: Annotated[str, typer.Option(help="csv, parquet, tensorboard, mlflow or wandb.")] = "csv",
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="The folder to write to. [default: driftline-NAME]")
    ] = None,
    online: Annotated[
        bool, typer.Option("--online", help="Of mlflow and wandb: send to the server that their own settings name.")
    ] = False,
    runs: RunsFolder = None,
) -> None:
    """Write finished runs in another tool's form: scores over time, final scores, gauges, settings and cards.

    Exporting a run twice does not double it.
    """
    from driftline import exports
    from driftline.cli.finished import finished

    found = finished(runs_given, runs).runs
    folder = output or Path(f"driftline-{to}")
    sink = exports.make(to, folder, online)
    written, kept = exports.export(found, sink)
    already = f", {kept} there already" if kept else ""
    echo(f"{written} run(s) exported{already}" if online else f"{written} run(s) exported to {folder}{already}")
    if not online:
        echo(f"next: {sink.look.format(folder=folder)}")
