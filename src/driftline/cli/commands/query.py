"""`driftline query`: run SQL over all runs."""

from __future__ import annotations

from typing import Annotated

import typer

from driftline.cli.options import RunsFolder
from driftline.cli.printing.terminal import echo


def query(
    sql: Annotated[
        str, typer.Argument(help="One SELECT over runs, failures, answers, probes, diagnostics and scores.")
    ],
    runs: RunsFolder = None,
) -> None:
    """Run an SQL query over all runs and print CSV."""
    from driftline.io.sanitize import frame_to_csv
    from driftline.store.store import Store

    echo(frame_to_csv(Store.open(runs).query(sql)), nl=False)
