"""The result table of the page: headline columns first, a bar for each interval, the scale in the head."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from driftline import registry
from driftline.report.analysis.pareto import primary_column
from driftline.report.analysis.result_table import Column, ResultTable, Row, Score
from driftline.report.format import count_of, format_false_alarm, format_interval, format_value
from driftline.report.page.look import REST

SHOWN = 4  # columns in view; the others are behind a button
ON_A_PHONE = 2


@dataclass(frozen=True)
class Bar:
    """A number with its interval on the scale of its column, in percent of the width."""

    text: str
    at: float
    left: float
    width: float
    key: str
    title: str
    best: bool


@dataclass(frozen=True)
class PageColumn:
    """A column with the ends of its scale."""

    column: Column
    low: float
    high: float
    css: str
    definition: str

    @property
    def low_text(self) -> str:
        return self._end(self.low)

    @property
    def high_text(self) -> str:
        return self._end(self.high)

    def _end(self, value: float) -> str:
        return f"{100 * value:,.0f}" if self.column.share else f"{value:,.3g}"

    def bar(self, cell: Score | None, bold: bool) -> Bar | None:
        """Return a cell on the scale."""
        if cell is None:
            return None
        share = self.column.share
        ends = (cell.low, cell.high) if math.isfinite(cell.low) else (cell.value, cell.value)
        left, right = (self._place(value) for value in ends)
        alarm = format_false_alarm(cell.false_alarm)
        about = f"{self.column.name}: {format_value(cell.value, share)} {format_interval(cell, share)}".rstrip()
        title = (
            f"{about}, n = {cell.n:,} {cell.unit}, {count_of(cell.seeds, 'seed')}; 95% interval over {cell.interval}"
        )
        text = format_value(cell.value, share)
        width = max(right - left, 0.0)
        return Bar(
            *(text, self._place(cell.value), left, round(width, 1), f"{cell.value:.6g}"),
            title=f"{title}; {alarm}" if alarm else title,
            best=cell.best and bold,
        )

    def _place(self, value: float) -> float:
        span = (self.high - self.low) or 1.0
        return round(min(100.0, max(0.0, 100 * (value - self.low) / span)), 1)


@dataclass(frozen=True)
class PageRow:
    """A method's cells, its color, its compute and its seeds."""

    method: str
    color: str
    bars: tuple[Bar | None, ...]
    gmac: float | None
    seeds: int


@dataclass(frozen=True)
class PageTable:
    """A result table, the best method first."""

    columns: tuple[PageColumn, ...]
    rows: tuple[PageRow, ...]
    trivial: PageRow | None
    note: str


def page_table(table: ResultTable, colors: Mapping[str, str]) -> PageTable:
    """Return the result table for the page."""
    primary = primary_column(table)
    ordered = sorted(table.columns, key=lambda column: _importance(table, column, primary))
    columns = tuple(_scaled(table, column, k) for k, column in enumerate(ordered))
    places = [table.columns.index(one.column) for one in columns]
    bold = [_distinguishes(table, place) for place in places]
    rows = sorted(table.rows, key=lambda row: _order(row, table, primary))
    made = tuple(_row(row, columns, places, bold, colors) for row in rows)
    trivial = _row(table.trivial, columns, places, bold, colors) if table.trivial else None
    return PageTable(columns, made, trivial, _note(table, primary, any(bold)))


def _row(
    row: Row, columns: tuple[PageColumn, ...], places: list[int], bold: list[bool], colors: Mapping[str, str]
) -> PageRow:
    bars = (one.bar(row.cells[place], b) for one, place, b in zip(columns, places, bold, strict=True))
    return PageRow(row.method, colors.get(row.method, REST), tuple(bars), row.gmac, row.seeds)


def _importance(table: ResultTable, column: Column, primary: Column | None) -> tuple[bool, int]:
    """Return the order of columns: the primary metric, then those of the summary, then the others."""
    benchmark = registry.get("benchmark", table.group.benchmark)
    summary = list(benchmark.summary_metrics)
    pair = (column.metric, column.stat)
    return column != primary, summary.index(pair) if pair in summary else len(summary)


def _distinguishes(table: ResultTable, place: int) -> bool:
    """Return whether some method of a column is significantly worse than the best, so that bold says something."""
    ranked = [cell for row in table.rows if row.method in table.group.ranked and (cell := row.cells[place])]
    return any(cell.best for cell in ranked) and not all(cell.best for cell in ranked)


def _order(row: Row, table: ResultTable, primary: Column | None) -> tuple[float, str]:
    cell = row.cells[table.columns.index(primary)] if primary else None
    sign = 1 if primary and primary.better == "lower" else -1
    return (sign * cell.value if cell else math.inf, row.method)


def _scaled(table: ResultTable, column: Column, place: int) -> PageColumn:
    """Return a column with a scale that holds all intervals, with round ends."""
    rows = [*table.rows, *([table.trivial] if table.trivial else [])]
    cells = [cell for row in rows if (cell := row.cells[table.columns.index(column)])]
    ends = [v for cell in cells for v in (cell.value, cell.low, cell.high) if math.isfinite(v)] or [0.0, 1.0]
    step = 0.1 if column.share else 10 ** math.floor(math.log10(max(max(ends), 1e-9)))
    low = step * math.floor(min(ends) / step + 1e-9) if column.share else 0.0
    high = step * math.ceil(max(ends) / step - 1e-9)
    css = "" if place < ON_A_PHONE else "wider" if place < SHOWN else "more"
    given = "".join(f", {key} = {value}" for key, value in column.settings.items())
    return PageColumn(column, low, max(high, low + step), css, f"{column.formula}{given}")


def _note(table: ResultTable, primary: Column | None, bold: bool) -> str:
    rows = len(table.rows)
    first = f"{count_of(rows, 'method')}{f', best {primary.word} first' if primary and rows > 1 else ''}."
    kinds = {cell.interval for cell in table.cells() if math.isfinite(cell.low)}
    bars = f" Bars: 95% intervals over {' or '.join(sorted(kinds))}." if kinds else ""
    if bold:
        return f"{first}{bars} Bold: best, or not significantly worse."
    return (
        f"{first}{bars} No difference from the best is significant, so nothing is bold." if rows > 1 else first + bars
    )
