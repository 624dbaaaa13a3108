"""`driftline check`: verify the files of a store."""

from __future__ import annotations

from typing import Annotated

import typer

from driftline.cli.options import RunsFolder
from driftline.cli.printing.terminal import echo

REPAIR_HINT = "The `driftline run` that made them makes runs again, and a stage when a missing or damaged run needs it."


def check(
    repair: Annotated[
        bool,
        typer.Option("--repair", help="Remove what is damaged; the next `driftline run` computes it again if needed."),
    ] = False,
    runs: RunsFolder = None,
) -> None:
    """Verify the checksums of all runs and stages, and list the damaged ones.

    Exit code 1 if something is damaged and was not repaired.
    """
    from driftline.store import check as checking
    from driftline.store.store import Store

    store = Store.open(runs)
    found = checking.check(store)
    for name, reason in found.damage.items():
        echo(f"damaged: {name}: {reason}")
    echo(f"{store.name}: {found.files} runs, stages and notes verified, {len(found.damage)} damaged")
    if found.damage and repair:
        checking.repair(store, found)
        echo(f"{len(found.damage)} removed. {REPAIR_HINT}")
    elif found.damage:
        echo(f"`driftline check --repair` removes them. {REPAIR_HINT}")
        raise typer.Exit(1)
