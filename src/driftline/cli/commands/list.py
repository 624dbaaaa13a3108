"""`driftline list`: print registered names, or the runs by time."""

from __future__ import annotations

from typing import Annotated

import typer

from driftline.cli.completion import complete_words
from driftline.cli.options import RunsFolder
from driftline.cli.printing.names import KINDS, names


def list_(
    kind: Annotated[
        str, typer.Argument(help=f"{', '.join(KINDS)}, or runs", autocompletion=complete_words(*KINDS, "runs"))
    ],
    runs: RunsFolder = None,
) -> None:
    """List registered methods, benchmarks, datasets, models or metrics, or the runs by time."""
    if kind == "runs":
        from driftline.cli.printing.run_list import print_store_runs
        from driftline.store.store import Store

        print_store_runs(Store.open(runs))
    else:
        names(kind)
