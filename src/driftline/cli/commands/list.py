"""`driftline list`: print registered names, or the finished runs."""

from __future__ import annotations

from typing import Annotated

import typer

from driftline.cli.options import RunsFolder
from driftline.cli.printing.names import KINDS, names


def list_(kind: Annotated[str, typer.Argument(help=f"{', '.join(KINDS)}, or runs")], runs: RunsFolder = None) -> None:
    """List registered methods, benchmarks, datasets, models or metrics, or the finished runs."""
    if kind == "runs":
        from driftline.cli.printing.runs import print_store_runs
        from driftline.store.store import Store

        print_store_runs(Store.open(runs))
    else:
        names(kind)
