"""The first thing a newcomer runs: a benchmark in miniature on embedded data, offline, and the report."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import typer

from driftline.cli.running import carry_out_spec
from driftline.report.page import write_report
from driftline.spec import parse
from driftline.store import Store


def quickstart(output: Path, runs: Path | None, jobs: int) -> int:
    """Run a timeline over drifting digits with what the install allows, draw the report; the exit code."""
    store = Store.create(runs or os.environ.get("DRIFTLINE_RUNS") or "quickstart-runs")
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
    record, code = carry_out_spec(spec, store, None, jobs, quiet=False)
    if len(record):
        write_report(record, output)
        typer.echo(f"report: {output.resolve()}")
    typer.echo("next:   driftline audit YOURS.csv --time DATE --target LABEL    # your own table and model")
    return code
