"""`driftline diff`: compare two runs."""

from __future__ import annotations

from driftline.cli.options import Run, RunsFolder


def diff(first: Run, second: Run, runs: RunsFolder = None) -> None:
    """Compare two runs: the settings that differ, then their scores."""
    from driftline.cli.printing.runs import print_difference
    from driftline.store.store import Store

    store = Store.open(runs)
    print_difference(store.find(first), store.find(second))
