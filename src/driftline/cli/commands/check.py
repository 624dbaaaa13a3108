"""`driftline check`: verify the files of a store."""

from __future__ import annotations

from typing import Annotated

import typer

from driftline.cli.options import RunsFolder
from driftline.cli.printing.terminal import echo

REPAIR_HINT = "The same `driftline run` computes the runs again, and the stages that they need."


def check(
    repair: Annotated[
        bool,
        typer.Option("--repair", help="Remove what is damaged; the next `driftline run` computes it again if needed."),
    ] = False,
    runs: RunsFolder = None,
) -> None:
    """Verify the checksums of all runs and stages.

    The damaged ones are listed. Exit code 1 if something is damaged and was not repaired.
    """
    from driftline.store import check as checking
    from driftline.store.store import Store

    store = Store.open(runs)
    result = checking.check(store)
    for name, reason in result.damage.items():
        echo(f"damaged: {name}: {reason}")
    echo(f"{store.name}: {result.files} runs, stages and notes verified, {len(result.damage)} damaged")
    if result.damage and repair:
        checking.repair(store, result)
        echo(f"{len(result.damage)} removed. {REPAIR_HINT}")
    elif result.damage:
        echo(f"`driftline check --repair` removes them. {REPAIR_HINT}")
        raise typer.Exit(1)
