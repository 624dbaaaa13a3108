"""`driftline table`: print a table of results."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from driftline.cli.options import Runs, RunsFolder, parse_macs, refuse_empty, split_names
from driftline.cli.printing.terminal import echo
from driftline.cli.select_runs import select_runs

if TYPE_CHECKING:
    from driftline.record.run import Record
    from driftline.report.tables.render import Tables

Format = Annotated[
    str | None,
    typer.Option(
        callback=refuse_empty, help="md, latex or csv. [default: drawn on a terminal, md in a file or a pipe]"
    ),
]
Paper = Annotated[
    str | None,
    typer.Option(
        callback=refuse_empty, help="A paper's table, such as seq-to-final/table-9; see `driftline list paper-tables`."
    ),
]
Matrix = Annotated[bool, typer.Option("--matrix", help="Methods by benchmarks, of `driftline run matrix`.")]
Leaderboard = Annotated[
    bool, typer.Option("--leaderboard", help="Which method to deploy if the drift is not known: regrets and ranks.")
]
Compare = Annotated[
    bool, typer.Option("--compare", help="Pairwise comparison of methods: paired difference, interval, corrected p.")
]
Ranks = Annotated[bool, typer.Option("--ranks", help="Mean ranks of methods over data, models and sequences.")]
BudgetMacs = Annotated[
    str | None, typer.Option(help="Only runs of `driftline run --budget-macs` with this budget, e.g. 1e9.")
]
Metrics = Annotated[
    str | None, typer.Option(help="METRIC or METRIC:STAT, separated by commas. [default: headline metrics]")
]
Methods = Annotated[
    str | None, typer.Option(help="Methods to show, in this order: names or labels, separated by commas.")
]
Order = Annotated[
    str | None, typer.Option(callback=refuse_empty, help="A metric to sort the rows by, best first. [default: by name]")
]
Columns = Annotated[
    str | None, typer.Option(help="Columns to show, in this order, such as ood:mean,gmac. [default: all]")
]
Precision = Annotated[int | None, typer.Option(help="Number of decimals. [default: 1 for percentages, else 2]")]
Caption = Annotated[
    str | None, typer.Option(callback=refuse_empty, help="Caption in place of the one from the protocol.")
]
Label = Annotated[
    str | None,
    typer.Option(callback=refuse_empty, help="Label in LaTeX, such as tab:results. [default: from the title]"),
]
Transpose = Annotated[bool, typer.Option("--transpose", help="Methods as columns.")]
NoNotes = Annotated[bool, typer.Option("--no-notes", help="Only the numbers and the caption.")]


def table(
    names: Runs = None,
    format: Format = None,
    paper: Paper = None,
    matrix: Matrix = False,
    leaderboard: Leaderboard = False,
    compare: Compare = False,
    ranks: Ranks = False,
    budget_macs: BudgetMacs = None,
    metrics: Metrics = None,
    methods: Methods = None,
    order: Order = None,
    columns: Columns = None,
    precision: Precision = None,
    caption: Caption = None,
    label: Label = None,
    transpose: Transpose = False,
    no_notes: NoNotes = False,
    runs: RunsFolder = None,
) -> None:
    """Print a table of results.

    Methods by metrics, with mean and interval over seeds; or another table (`--paper`, `--matrix`, `--leaderboard`,
    `--compare`, `--ranks`).
    """
    from driftline.report.tables.make import make_tables

    tables = make_tables(
        _selected(names, runs, whole=bool(paper) or matrix or leaderboard),
        paper=paper,
        matrix=matrix,
        leaderboard=leaderboard,
        compare=compare,
        ranks=ranks,
        budget_macs=parse_macs(budget_macs),
        metrics=split_names("--metrics", metrics),
        methods=split_names("--methods", methods),
        order=order or "",
        columns=split_names("--columns", columns),
        precision=precision,
        **{"caption": caption or "", "label": label or ""},
        transpose=transpose,
        notes=not no_notes,
    )
    _print(tables, format)


def _selected(names: list[str] | None, runs: str | None, whole: bool) -> Record:
    """Return the runs to show: their scores, or the whole of them."""
    from driftline.record.views import SCORES

    return select_runs(names, runs, None if whole else SCORES)


def _print(tables: Tables, format: str | None) -> None:
    """Draw tables on a terminal, or print them as text."""
    if format is None and sys.stdout.isatty():
        from driftline.cli.printing.console import SafeConsole
        from driftline.cli.printing.draw_table import draw

        draw(tables.tables, SafeConsole(highlight=False))
    else:
        echo(tables.text(format or "md"), nl=False)
