"""`driftline list`: print registered names, or the runs by time."""

from __future__ import annotations

from typing import Annotated

import typer

from driftline import registry
from driftline.cli.completion import complete_words
from driftline.cli.options import DataFolder, RunsFolder
from driftline.cli.printing.terminal import echo
from driftline.errors import unknown_name

KINDS = {"penalties" if kind == "penalty" else f"{kind}s": kind for kind in registry.KINDS}


def list_(
    kind: Annotated[
        str, typer.Argument(help=f"{', '.join(KINDS)}, or runs", autocompletion=complete_words(*KINDS, "runs"))
    ],
    runs: RunsFolder = None,
    data_dir: DataFolder = None,
) -> None:
    """List methods, benchmarks, datasets, models or metrics, or runs.

    Datasets are listed with size, license and where their files are, or where to get them. Runs are listed by time,
    with status, score and command.
    """
    if kind == "runs":
        from driftline.cli.printing.run_list import print_store_runs
        from driftline.store.store import Store

        print_store_runs(Store.open(runs))
    elif kind == "datasets":
        from driftline.cli.printing.dataset_list import print_datasets

        print_datasets(data_dir)
    else:
        print_names(kind)


def print_names(kinds: str) -> None:
    """Print all registered things of a kind, each with the first line of its description."""
    if kinds not in KINDS:
        raise unknown_name("list", kinds, [*KINDS, "runs"])
    kind = KINDS[kinds]
    known = registry.names(kind)
    width = max(map(len, known), default=0)
    for name in known:
        echo(f"{name:<{width}}  {registry.summary(kind, name)}")
