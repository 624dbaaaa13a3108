"""The first thing a newcomer runs: a benchmark in miniature on embedded data, offline, and the report."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import typer

from driftline.cli import show
from driftline.cli.progress import Progress
from driftline.engine.plan import plan
from driftline.engine.run import carry_out
from driftline.engine.worker import keep_memory
from driftline.report.page import write_report
from driftline.spec import parse
from driftline.store import Store


def quickstart(output: Path, runs: Path | None, jobs: int) -> None:
    """Run a timeline over drifting digits with every method that the install allows, and draw the report."""
    keep_memory()
    store = Store.create(runs or "quickstart-runs")
    deep = find_spec("torch") is not None
    spec = parse(
        {
            "benchmark": "timeline",
            "data": "digits",
            "model": "linear" if deep else "logistic",
            "methods": "erm,erm-all,ft" if deep else "erm,erm-all",
            "seeds": 3,
        }
    )
    typer.echo("timeline: handwritten digits that slowly turn and blur. How long does a model stay good?", err=True)
    planned = plan(spec, None)
    with Progress(planned) as progress:
        summary = carry_out(planned, store, None, jobs, progress.watch)
    record = store.record(planned.run_keys)
    show.summary(record, store, summary)
    write_report(record, output)
    typer.echo(f"report: {output.resolve()}")
    typer.echo("next:   driftline run timeline --data table --set data.path=YOURS.csv --set data.time=DATE \\")
    typer.echo("            --set data.target=LABEL --model boosting --methods erm,erm-all")
