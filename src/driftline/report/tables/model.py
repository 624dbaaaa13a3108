"""One model of all tables: a title, columns, rows of cells, and notes. The writers turn it into text."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from driftline.report.analysis.estimates import Estimate
from driftline.report.analysis.highlights import PLAIN, Highlight
from driftline.report.format import NONE, count_range, format_percent
from driftline.types import JsonObject

Record = JsonObject
"""A line of a CSV file."""


@dataclass(frozen=True)
class TableColumn:
    """A column: its name, small print below it, and how its numbers are written."""

    name: str
    detail: str = ""
    title: str = ""
    """Name and small print in one line; by default the name."""
    format: Callable[[float | None], str] = format_percent
    left: bool = False
    """Whether the column is aligned to the left."""
    key: str = ""
    """What else a user may call it, such as `METRIC:STAT`."""

    @property
    def heading(self) -> str:
        return self.title or self.name

    @property
    def aliases(self) -> set[str]:
        """The names that select the column, in lower case."""
        named = {self.name, self.heading, self.key, self.key.partition(":")[0]}
        return {" ".join(name.lower().split()) for name in named if name}


@dataclass(frozen=True)
class TableCell:
    """An estimate with its interval, or a text."""

    content: Estimate | str
    highlight: Highlight = PLAIN
    suffix: str = ""
    """Text after the interval."""
    lines: tuple[str, ...] = ()
    """Further lines of small print."""
    format: Callable[[float | None], str] | None = None
    """How the number is written, if not as the column says."""

    @property
    def estimate(self) -> Estimate:
        """The number of a cell that has one."""
        assert isinstance(self.content, Estimate)
        return self.content


@dataclass(frozen=True)
class TableRow:
    """A row; `source` is the paper that published it, if it is not ours."""

    name: str
    cells: tuple[TableCell | None, ...]
    source: str = ""
    group: str = ""
    """The heading that the row stands under."""

    @property
    def title(self) -> str:
        return f"{self.name} in {self.source}" if self.source else self.name


@dataclass(frozen=True)
class Table:
    """A table. With a caption of its own, notes are small print below; otherwise title and notes are the caption."""

    title: str
    row_header: str
    columns: tuple[TableColumn, ...]
    rows: tuple[TableRow, ...]
    notes: tuple[str, ...] = ()
    caption: str = ""
    definitions: tuple[tuple[str, str], ...] = ()
    footnotes: tuple[str, ...] = ()
    """Numbered from 1."""
    below: Table | None = None
    """A smaller table below, without title and notes."""
    records: tuple[Record, ...] = ()
    """Lines of a CSV file; by default one for each number."""
    max_columns: int = 99
    """More columns are written in several parts, where the width of a page matters."""
    label: str = ""
    """The label in LaTeX; by default made from the title."""

    @property
    def all_notes(self) -> list[str]:
        """The caption or the sample sizes, then the notes."""
        return [note for note in (self.caption or self.sample_sizes, *self.notes) if note]

    @property
    def sample_sizes(self) -> str:
        """Seeds, sample sizes and number of cells behind our numbers."""
        ours = [cell.content for row in self.rows if not row.source for cell in row.cells if cell]
        numbers = [content for content in ours if isinstance(content, Estimate)]
        units = dict.fromkeys(number.unit for number in numbers if number.n)
        sizes = {unit: count_range([e.n for e in numbers if e.n and e.unit == unit]) for unit in units}
        counts = {
            "Seeds of our numbers": count_range([number.seeds for number in numbers if number.seeds]),
            "n of each seed": " or ".join(f"{size} {unit}" for unit, size in sizes.items()),
            "Cells behind a mean": count_range([number.cells for number in numbers if number.cells > 1]),
        }
        return " ".join(f"{name}: {count}." for name, count in counts.items() if count)

    def text(self, cell: TableCell | None, column: TableColumn) -> str:
        """Return the main text of a cell."""
        if cell is None:
            return NONE
        if isinstance(cell.content, str):
            return cell.content
        return (cell.format or column.format)(cell.content.value)

    def small_print(self, cell: TableCell | None, column: TableColumn) -> list[str]:
        """Return the lines of small print of a cell: its interval first."""
        if cell is None or isinstance(cell.content, str):
            return list(cell.lines) if cell else []
        number, interval, write = cell.content, "", cell.format or column.format
        if not math.isnan(number.low):
            interval = f"[{write(number.low)}, {write(number.high)}]"
        count = f"(n = {number.cells})" if number.cells > 1 and self._cells_differ else ""
        return [" ".join(filter(None, (interval, cell.suffix, count))), *cell.lines]

    @property
    def _cells_differ(self) -> bool:
        """Whether means are over different numbers of cells, so that each shows its own."""
        contents = (cell.content for row in self.rows for cell in row.cells if cell)
        return len({one.cells for one in contents if isinstance(one, Estimate) and one.cells > 1}) > 1

    def grouped_rows(self) -> Iterator[tuple[str, TableRow]]:
        """Yield each row with the heading to print above it, which is empty within a group."""
        group = ""
        for row in self.rows:
            yield row.group if row.group != group else "", row
            group = row.group

    def csv_records(self) -> Iterator[Record]:
        """Yield the lines of a CSV file."""
        if self.records:
            yield from self.records
            return
        for row in self.rows:
            for column, cell in zip(self.columns, row.cells, strict=True):
                if cell is not None and isinstance(cell.content, Estimate):
                    number, style = cell.content, cell.highlight
                    yield {
                        **{"table": self.title, "row": row.name, "column": column.name},
                        **{"value": repr(number.value), "low": repr(number.low), "high": repr(number.high)},
                        **{"seeds": number.seeds, "n": number.n, "unit": number.unit, "of": number.cells},
                        **{"bold": int(style.bold), "italic": int(style.italic), "source": row.source},
                    }


def bold_note(line: str = "column") -> str:
    """Return the meaning of bold numbers in a column or row."""
    return (
        f"Bold: best of its {line}, or not significantly worse (paired t-test over common seeds at 5%, "
        f"Holm-corrected for the methods of the {line}); needs three seeds."
    )


def text_columns(*names: str, left: int = 0) -> tuple[TableColumn, ...]:
    """Return columns of texts, the first of them aligned to the left."""
    return tuple(TableColumn(name, left=k < left) for k, name in enumerate(names))


def text_row(name: str, *texts: str) -> TableRow:
    """Return a row of texts."""
    return TableRow(name, tuple(TableCell(text) for text in texts))
