"""Tables drawn on a terminal: columns that do not fit the window follow in further parts."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from driftline.io.sanitize import escape_control
from driftline.report.tables.model import Table, TableCell, TableColumn

PADDING = 2  # spaces between two columns, one of them the box's
HEADING_WIDTH = 12  # a heading is wrapped to this width, or to that of its column if it is wider
SMALL = "dim"


def draw(tables: Sequence[Table], console: Console) -> None:
    """Print tables with their notes, without a line that is wider than the console."""
    for table in tables:
        console.print(_text(table.title, "bold"))
        for grid in _parts(table, console.width):
            console.print(grid)
            console.print()
        for note in table.all_notes:
            console.print(_text(note, SMALL))
        for number, footnote in enumerate(table.footnotes, start=1):
            console.print(_text(f"{number}. {footnote}", SMALL))
        if table.below:
            for grid in _parts(table.below, console.width):
                console.print()
                console.print(grid)
    if any(table.definitions for table in tables):
        console.print(_text("Definitions of the columns: --format md", SMALL))


def _parts(table: Table, width: int) -> Iterator[Grid]:
    """Yield the table in parts that fit the width, each with the names of the rows."""
    names = [table.row_header, *(row.title for row in table.rows), *(row.group for row in table.rows)]
    first = min(max(map(cell_len, names)), max(HEADING_WIDTH, width // 3))
    free, part = width - first, list[int]()
    for place, column in enumerate(table.columns):
        needed = min(_width(table, place, column), width - first - PADDING) + PADDING
        if part and needed > free:
            yield _grid(table, part, first)
            free, part = width - first, []
        part.append(place)
        free -= needed
    if part:
        yield _grid(table, part, first)


def _width(table: Table, place: int, column: TableColumn) -> int:
    lines = [line for row in table.rows for line in _lines(table, row.cells[place], column)]
    words = [*f"{column.name} {column.detail}".split(" "), ""]
    return max(map(cell_len, (*lines, *words)))


def _grid(table: Table, places: Sequence[int], first: int) -> Grid:
    grid = Grid(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, PADDING - 1, 0, 0))
    grid.add_column(_text(table.row_header), width=first, overflow="fold")
    for place in places:
        column = table.columns[place]
        width = max(_width(table, place, column), HEADING_WIDTH if column.detail else 0)
        heading = "\n".join(textwrap.wrap(column.name, width, break_on_hyphens=False))
        grid.add_column(
            Text.assemble(_text(heading), _text(f"\n{column.detail}" if column.detail else "", SMALL)),
            justify="left" if column.left else "right",
            overflow="fold",
        )
    for heading, row in table.grouped_rows():
        if heading:
            grid.add_row(_text(heading, "italic"))
        cells = [_cell(table, row.cells[place], table.columns[place]) for place in places]
        grid.add_row(_text(row.title), *cells, style=SMALL if row.source else None)
    return grid


def _cell(table: Table, cell: TableCell | None, column: TableColumn) -> Text:
    number, *small = _lines(table, cell, column)
    style = " ".join(word for word in ("bold", "italic") if cell and getattr(cell.highlight, word))
    return Text.assemble(_text(number, style), _text("".join(f"\n{line}" for line in small), SMALL))


def _lines(table: Table, cell: TableCell | None, column: TableColumn) -> list[str]:
    return [table.text(cell, column), *(line for line in table.small_print(cell, column) if line)]


def _text(text: str, style: str = "") -> Text:
    return Text("\n".join(escape_control(line) for line in text.split("\n")), style)
