"""`driftline report`: write the HTML report."""

from __future__ import annotations

from pathlib import Path

from driftline.cli.options import HtmlFile, Runs, RunsFolder
from driftline.cli.printing.terminal import echo
from driftline.cli.select_runs import select_runs


def report(names: Runs = None, output: HtmlFile = Path("report.html"), runs: RunsFolder = None) -> None:
    """Write a self-contained HTML page about finished runs."""
    from driftline.report.page.page import write_report

    write_report(select_runs(names, runs), output)
    echo(f"report: {output}")
