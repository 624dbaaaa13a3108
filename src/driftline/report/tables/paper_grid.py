"""Tables laid out as a paper has them, as text: Markdown, LaTeX or CSV."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from driftline.errors import unknown
from driftline.plain import CsvText
from driftline.report.analysis.estimates import Entry
from driftline.report.format import NONE, count_range, format_amount, format_value
from driftline.report.tables import latex
from driftline.report.tables.result import piped, plain_md


@dataclass(frozen=True)
class Line:
    """A row; `source` says where it was printed, if it is not ours."""

    name: str
    entries: tuple[Entry | None, ...]
    source: str = ""

    @property
    def title(self) -> str:
        return f"{self.name} in {self.source}" if self.source else self.name


@dataclass(frozen=True)
class Grid:
    """Rows by columns of shares, in percent, or of other numbers."""

    title: str
    corner: str
    columns: tuple[str, ...]
    lines: tuple[Line, ...]
    notes: tuple[str, ...] = ()
    share: bool = True

    @property
    def counted(self) -> bool:
        """Whether entries rest on different numbers of runs, so that each must say on how many."""
        return len({entry.of for line in self.lines for entry in line.entries if entry and entry.of > 1}) > 1

    @property
    def rests_on(self) -> str:
        """How many seeds, examples or times, and runs there are behind our numbers."""
        ours = [entry for line in self.lines if not line.source for entry in line.entries if entry]
        units = dict.fromkeys(entry.unit for entry in ours if entry.n)
        each = " or ".join(f"{count_range([e.n for e in ours if e.n and e.unit == unit])} {unit}" for unit in units)
        seeds, of = [entry.seeds for entry in ours if entry.seeds], [entry.of for entry in ours if entry.of > 1]
        said = {
            "Seeds of our numbers": count_range(seeds),
            "n of each seed": each,
            "Cells behind a mean": count_range(of),
        }
        return " ".join(f"{what}: {count}." for what, count in said.items() if count)


def render(grids: Sequence[Grid], format: str) -> str:
    """The grids as text: `md`, `latex` or `csv`."""
    if format not in FORMATS:
        raise unknown("format", format, FORMATS)
    return FORMATS[format](grids)


def _markdown(grids: Sequence[Grid]) -> str:
    return "\n".join(_markdown_grid(grid) for grid in grids)


def _markdown_grid(grid: Grid) -> str:
    def cell(entry: Entry | None) -> str:
        if entry is None:
            return NONE
        stars = "*" * (entry.mark.italic + 2 * entry.mark.bold)
        return " ".join(
            part
            for part in (f"{stars}{_shown(grid, entry.value)}{stars}", _interval(grid, entry), _count(grid, entry))
            if part
        )

    under = [note for note in (grid.rests_on, *grid.notes) if note]
    lines = [
        f"### {plain_md(grid.title)}",
        "",
        piped([grid.corner, *map(plain_md, grid.columns)]),
        piped([":--", *(["--:"] * len(grid.columns))]),
        *(piped([plain_md(line.title), *map(cell, line.entries)]) for line in grid.lines),
        *(["", *map(plain_md, under)] if under else []),
    ]
    return "\n".join(lines) + "\n"


def _latex(grids: Sequence[Grid]) -> str:
    return latex.NEEDS + "\n".join(_latex_grid(grid) for grid in grids)


def _latex_grid(grid: Grid) -> str:
    caption = " ".join(filter(None, [f"{grid.title}.", grid.rests_on, *grid.notes]))
    rows = [row for line in grid.lines for row in _latex_rows(grid, line)]
    return latex.environment(grid.title, caption, [latex.heading((grid.corner, *grid.columns))], rows)


def _latex_rows(grid: Grid, line: Line) -> list[list[str]]:
    """The numbers and, where there are intervals, under them those."""
    values, under = [latex.named(line.title)], [""]
    for entry in line.entries:
        text = latex.tex(_shown(grid, entry.value) if entry else NONE)
        for command, wanted in (("textit", entry and entry.mark.italic), ("textbf", entry and entry.mark.bold)):
            text = f"\\{command}{{{text}}}" if wanted else text
        values.append(text)
        under.append(latex.tiny(" ".join(filter(None, (_interval(grid, entry), _count(grid, entry)))) if entry else ""))
    return [cells for cells in (values, under) if any(cells)]


def _csv(grids: Sequence[Grid]) -> str:
    writer = CsvText()
    header = "table row column value low high seeds n unit of bold italic source"
    writer.writerow(header.split())
    for grid in grids:
        for line in grid.lines:
            for column, entry in zip(grid.columns, line.entries, strict=True):
                if entry:
                    numbers = (repr(entry.value), repr(entry.low), repr(entry.high))
                    counts = (entry.seeds, entry.n, entry.unit, entry.of)
                    marked = (int(entry.mark.bold), int(entry.mark.italic))
                    writer.writerow([grid.title, line.name, column, *numbers, *counts, *marked, line.source])
    return str(writer)


def _shown(grid: Grid, value: float) -> str:
    return format_value(value, True) if grid.share else format_amount(value)


def _interval(grid: Grid, entry: Entry) -> str:
    return "" if math.isnan(entry.low) else f"[{_shown(grid, entry.low)}, {_shown(grid, entry.high)}]"


def _count(grid: Grid, entry: Entry) -> str:
    return f"(n = {entry.of})" if grid.counted and entry.of > 1 else ""


FORMATS: dict[str, Callable[[Sequence[Grid]], str]] = {"md": _markdown, "latex": _latex, "csv": _csv}
