"""Tables as HTML for a notebook: headline numbers with small intervals; notes and definitions fold away."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from driftline.report.tables.model import Table, TableCell, TableColumn, TableRow

SMALL = "font-size:.8em;opacity:.75"
GRID = "border-collapse:collapse;font-variant-numeric:tabular-nums;white-space:nowrap"


def write(tables: Sequence[Table]) -> str:
    """Return tables as HTML without scripts, in the colors of the notebook."""
    return "\n".join(_table(table) for table in tables)


def _table(table: Table) -> str:
    notes = "".join(f"<p>{escape(note)}</p>" for note in table.all_notes)
    notes += "".join(f"<p><b>{escape(name)}</b>: {escape(text)}</p>" for name, text in table.definitions)
    if table.footnotes:
        notes += f"<ol>{''.join(f'<li>{escape(note)}</li>' for note in table.footnotes)}</ol>"
    folded = f"<details><summary>Notes and definitions</summary>{notes}</details>" if notes else ""
    below = _grid(table.below) if table.below else ""
    return f"<div><p><b>{escape(table.title)}</b></p>{_grid(table)}{below}{folded}</div>"


def _grid(table: Table) -> str:
    heading = "".join(
        f'<th style="text-align:{_side(column)}" title="{escape(column.heading)}">{escape(column.name)}'
        f'<br><span style="font-weight:normal;{SMALL}">{escape(column.detail)}</span></th>'
        for column in table.columns
    )
    rows = "".join(line for above, row in table.grouped_rows() for line in _lines(table, above, row))
    first = f'<th style="text-align:left">{escape(table.row_header)}</th>'
    grid = f'<table style="{GRID}"><thead><tr>{first}{heading}</tr></thead><tbody>{rows}</tbody></table>'
    return f'<div style="overflow-x:auto">{grid}</div>'


def _lines(table: Table, heading: str, row: TableRow) -> Iterator[str]:
    if heading:
        span = len(table.columns) + 1
        yield f'<tr><th colspan="{span}" style="text-align:left;font-style:italic">{escape(heading)}</th></tr>'
    style = ' style="opacity:.75"' if row.source else ""
    cells = "".join(
        f'<td style="text-align:{_side(column)}">{_cell(table, cell, column)}</td>'
        for cell, column in zip(row.cells, table.columns, strict=True)
    )
    yield f'<tr{style}><th style="text-align:left">{escape(row.title)}</th>{cells}</tr>'


def _cell(table: Table, cell: TableCell | None, column: TableColumn) -> str:
    text = escape(table.text(cell, column))
    if cell and cell.highlight.bold:
        text = f"<b>{text}</b>"
    if cell and cell.highlight.italic:
        text = f"<i>{text}</i>"
    small = "".join(f"<br>{escape(line)}" for line in table.small_print(cell, column) if line)
    return f'{text}<span style="{SMALL}">{small}</span>' if small else text


def _side(column: TableColumn) -> str:
    return "left" if column.left else "right"
