"""`driftline quickstart`: run every benchmark in miniature."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from driftline.cli.options import HtmlFile


def quickstart(
    output: HtmlFile = Path("quickstart.html"),
    runs: Annotated[
        str | None,
        typer.Option("--runs", help="Folder of the runs. [default: $DRIFTLINE_RUNS, else ./quickstart-runs]"),
    ] = None,
    jobs: Annotated[
        int, typer.Option(help="Number of parallel workers. Results are identical for any value.", min=1)
    ] = 2,
) -> None:
    """Run all benchmarks and an audit in miniature.

    Nothing is downloaded. A report is written at the end.
    """
    from driftline.cli.commands.run_quickstart import run_quickstart

    raise typer.Exit(run_quickstart(output, runs, jobs))
