"""Tables of finished runs, from one set of options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from driftline.errors import UserError
from driftline.record.run import Record
from driftline.report.analysis.displays import displays, select_methods
from driftline.report.tables.arrange import Layout, arrange, relabel
from driftline.report.tables.comparison import comparison_tables
from driftline.report.tables.leaderboard import leaderboard_tables
from driftline.report.tables.matrix import matrix_tables
from driftline.report.tables.model import Table
from driftline.report.tables.papers import paper_tables
from driftline.report.tables.ranking import ranking_tables
from driftline.report.tables.render import Tables
from driftline.report.tables.result import result_tables


def table(record: Record, format: str = "md", **options: Any) -> str:
    """Return a table of finished runs as `md`, `latex` or `csv`; the options are those of `Record.table`."""
    return make_tables(record, **options).text(format)


def make_tables(
    record: Record,
    *,
    paper: str | None = None,
    matrix: bool = False,
    leaderboard: bool = False,
    compare: bool = False,
    ranks: bool = False,
    budget_macs: float | None = None,
    metrics: Sequence[str] = (),
    methods: Sequence[str] = (),
    order: str = "",
    columns: Sequence[str] = (),
    precision: int | None = None,
    caption: str = "",
    label: str = "",
    transpose: bool = False,
    notes: bool = True,
) -> Tables:
    """Return the tables of finished runs; the options are those of `driftline table`."""
    special = bool(paper) + matrix + leaderboard + compare + ranks
    if special > 1:
        raise UserError(
            "--paper, --matrix, --leaderboard, --compare and --ranks each make a table of their own: give one of them"
        )
    if (metrics or order) and special:
        raise UserError(
            "--metrics and --order are for tables of results, without --paper, --matrix, --leaderboard, --compare, "
            "--ranks"
        )
    if methods and (matrix or leaderboard):
        raise UserError("--methods cannot select from a matrix: `driftline run matrix --methods` makes another one")
    layout = Layout(tuple(columns), precision, caption, label, transpose, notes)
    record = record if budget_macs is None else _at_equal_compute(record, budget_macs)
    selected = select_methods(record, methods) if methods else record
    if special:
        tables = relabel(_special_tables(selected, paper, matrix, leaderboard, compare), displays(selected))
    else:
        tables = result_tables(selected, metrics, methods, order)
    return Tables(tuple(arrange(tables, layout)), arranged=layout != Layout())


def _at_equal_compute(record: Record, budget: float) -> Record:
    """Return the runs with this budget of multiply-accumulates."""
    cut = [run for run in record.runs if run.common.run.budget_macs == budget]
    if not cut:
        known = {run.common.run.budget_macs for run in record.runs} - {None}
        others = (
            f"; there are runs with {', '.join(f'{macs:g}' for macs in sorted(filter(None, known)))}" if known else ""
        )
        raise UserError(
            f"--budget-macs {budget:g}: no run has this budget{others}. Make some with `driftline run --budget-macs`"
        )
    return Record(cut)


def _special_tables(record: Record, paper: str | None, matrix: bool, leaderboard: bool, compare: bool) -> list[Table]:
    if paper:
        return paper_tables(record, paper)
    if matrix:
        return matrix_tables(record)
    if leaderboard:
        return leaderboard_tables(record)
    return comparison_tables(record) if compare else ranking_tables(record)
