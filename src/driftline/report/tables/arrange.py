"""Arrange tables for print: columns, decimals, caption and label, notes, rows as columns, labels of methods."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from driftline.errors import UserError, unknown_name
from driftline.report.analysis.displays import Displays, with_class_names
from driftline.report.format import format_decimal, format_percent, format_value
from driftline.report.tables.model import Table, TableCell, TableColumn, TableRow

MAX_DECIMALS = 6
LABEL = re.compile(r"[A-Za-z0-9:._/+-]+")


@dataclass(frozen=True)
class Layout:
    """Layout of a printed table."""

    columns: Sequence[str] = ()
    """Columns to show, in this order; by default all."""
    precision: int | None = None
    """Number of decimals."""
    caption: str = ""
    label: str = ""
    """The label in LaTeX."""
    transpose: bool = False
    notes: bool = True

    def check(self) -> None:
        """Raise an error if a value cannot be used."""
        if self.precision is not None and not 0 <= self.precision <= MAX_DECIMALS:
            raise UserError(f"--precision {self.precision}: give 0 to {MAX_DECIMALS} decimals")
        if self.label and not LABEL.fullmatch(self.label):
            raise UserError(f"--label {self.label}: a label has letters, digits and : . _ / + - only, as tab:results")


def arrange(tables: Sequence[Table], layout: Layout) -> list[Table]:
    """Return the tables in this layout."""
    layout.check()
    if (layout.caption or layout.label) and len(tables) > 1:
        titles = "; ".join(table.title for table in tables)
        raise UserError(f"--caption and --label are for one table, and these runs make {len(tables)}: {titles}")
    if layout.columns:
        tables = _select_columns(tables, layout.columns)
    arranged = []
    for table in tables:
        if layout.precision is not None:
            table = _with_decimals(table, layout.precision)
        if not layout.notes:
            table = replace(table, notes=(), definitions=(), below=None, caption=table.caption or f"{table.title}.")
        table = replace(table, caption=layout.caption or table.caption, label=layout.label)
        arranged.append(_transposed(table) if layout.transpose else table)
    return arranged


def relabel(tables: Sequence[Table], shown: Displays) -> list[Table]:
    """Return the tables with the labels of methods in place of their names."""

    def label(name: str) -> str:
        return shown[name].label if name in shown else name

    def cell(one: TableCell | None) -> TableCell | None:
        return replace(one, content=label(one.content)) if one and isinstance(one.content, str) else one

    return [
        replace(
            table,
            columns=tuple(replace(column, name=label(column.name)) for column in table.columns),
            rows=tuple(replace(row, name=label(row.name), cells=tuple(map(cell, row.cells))) for row in table.rows),
            notes=with_class_names(table.notes, shown),
            footnotes=with_class_names(table.footnotes, shown),
        )
        for table in tables
    ]


def _select_columns(tables: Sequence[Table], names: Sequence[str]) -> list[Table]:
    """Return the columns of these names, in this order; a table that has none of them is left out."""
    for name in names:
        if not any(name.lower() in column.aliases for table in tables for column in table.columns):
            known = {column.key or column.name for table in tables for column in table.columns}
            raise unknown_name("column", name, known)
    selected = []
    for table in tables:
        places = [k for name in names for k, column in enumerate(table.columns) if name.lower() in column.aliases]
        places = list(dict.fromkeys(places))
        rows = tuple(replace(row, cells=tuple(row.cells[k] for k in places)) for row in table.rows)
        if places:
            selected.append(replace(table, columns=tuple(table.columns[k] for k in places), rows=rows))
    return selected


def _with_decimals(table: Table, decimals: int) -> Table:
    shares = {format_percent: True, format_decimal: False}
    columns = (
        replace(column, format=partial(format_value, share=shares[column.format], decimals=decimals))
        if column.format in shares
        else column
        for column in table.columns
    )
    return replace(table, columns=tuple(columns))


def _transposed(table: Table) -> Table:
    """Return the table with a column for each row; the heading of a row is small print."""
    rows = tuple(
        TableRow(column.heading, tuple(cell and replace(cell, format=column.format) for cell in cells))
        for column, cells in zip(table.columns, zip(*(row.cells for row in table.rows), strict=True), strict=True)
    )
    columns = tuple(
        TableColumn(row.title, row.group, f"{row.title} ({row.group})" if row.group else "") for row in table.rows
    )
    return replace(table, row_header="", columns=columns, rows=rows)
