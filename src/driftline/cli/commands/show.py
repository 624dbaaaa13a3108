"""`driftline show`: print one run."""

from __future__ import annotations

from driftline.cli.options import Run, RunsFolder


def show(run: Run, runs: RunsFolder = None) -> None:
    """Show one run: its scores and its protocol card."""
    from driftline.cli.printing.runs import print_run
    from driftline.store.store import Store

    print_run(Store.open(runs), run)
