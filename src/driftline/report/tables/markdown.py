"""Tables as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from driftline.report.tables.model import Table, TableCell, TableColumn, TableRow


def write(tables: Sequence[Table]) -> str:
    """Return tables as Markdown."""
    return "\n".join(_table(table) for table in tables)


def _table(table: Table) -> str:
    blocks = [
        [f"### {escape(table.title)}"],
        _grid(table),
        [escape(note) for note in table.all_notes],
        [f"- {name}: {escape(text)}" for name, text in table.definitions],
        [f"{k}. {escape(text)}" for k, text in enumerate(table.footnotes, start=1)],
        _grid(table.below) if table.below else [],
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _grid(table: Table) -> list[str]:
    return [
        _line([escape(table.row_header), *(escape(column.heading) for column in table.columns)]),
        _line([":--", *(":--" if column.left else "--:" for column in table.columns)]),
        *(line for heading, row in table.grouped_rows() for line in _lines(table, heading, row)),
    ]


def _lines(table: Table, heading: str, row: TableRow) -> list[str]:
    above = [_line([f"*{escape(heading)}*", *[""] * len(table.columns)])] if heading else []
    return [*above, _line([escape(row.title), *_cells(table, row)])]


def _cells(table: Table, row: TableRow) -> list[str]:
    return [_cell(table, cell, column) for cell, column in zip(row.cells, table.columns, strict=True)]


def _cell(table: Table, cell: TableCell | None, column: TableColumn) -> str:
    stars = "*" * (cell.highlight.italic + 2 * cell.highlight.bold) if cell else ""
    small, *lines = table.small_print(cell, column) or [""]
    number = f"{stars}{escape(table.text(cell, column))}{stars}"
    return " · ".join([" ".join(filter(None, (number, escape(small)))), *(escape(line) for line in lines if line)])


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def escape(text: str) -> str:
    """Return text that Markdown shows as it is."""
    return "".join(f"\\{c}" if c in "\\|<*`" else c for c in " ".join(text.split())).replace("](", "]\\(")
