"""`driftline table`: print a table of results."""

from __future__ import annotations

from typing import Annotated

import typer

from driftline.cli.options import Runs, RunsFolder
from driftline.cli.printing.terminal import echo
from driftline.cli.select_runs import select_runs
from driftline.errors import UserError


def table(
    names: Runs = None,
    format: Annotated[str, typer.Option(help="md, latex or csv")] = "md",
    paper: Annotated[
        str | None,
        typer.Option(help="A paper's table, such as seq-to-final/table-9; see `driftline list paper-tables`."),
    ] = None,
    matrix: Annotated[bool, typer.Option("--matrix", help="Methods by benchmarks, of `driftline run matrix`.")] = False,
    compare: Annotated[
        bool,
        typer.Option("--compare", help="Pairwise comparison of methods: paired difference, interval, corrected p."),
    ] = False,
    ranks: Annotated[
        bool, typer.Option("--ranks", help="Mean ranks of methods over data, models and sequences.")
    ] = False,
    runs: RunsFolder = None,
) -> None:
    """Print a table of results: methods by metrics, mean and interval over seeds; or one of the tables below."""
    from driftline.report.tables.comparison import comparison_tables
    from driftline.report.tables.matrix import matrix_tables
    from driftline.report.tables.papers import paper_tables
    from driftline.report.tables.ranking import ranking_tables
    from driftline.report.tables.render import render
    from driftline.report.tables.result import result_tables

    if bool(paper) + matrix + compare + ranks > 1:
        raise UserError("--paper, --matrix, --compare and --ranks each make a table of their own: give one of them")
    record = select_runs(names, runs, None if paper or matrix else ("scores",))
    if paper:
        tables = paper_tables(record, paper)
    elif matrix:
        tables = matrix_tables(record)
    elif compare:
        tables = comparison_tables(record)
    else:
        tables = ranking_tables(record) if ranks else result_tables(record)
    echo(render(tables, format), nl=False)
