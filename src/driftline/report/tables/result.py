"""Result tables as text: Markdown to read, LaTeX to print, CSV to compute with."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from driftline.errors import unknown
from driftline.plain import CsvText
from driftline.record import Record
from driftline.report.analysis.groups import groups
from driftline.report.analysis.result_table import (
    Cell,
    Column,
    ResultTable,
    Row,
    tabulate,
)
from driftline.report.analysis.selected_settings import HEADER, chosen
from driftline.report.format import (
    NONE,
    count_range,
    format_amount,
    format_false_alarm,
    format_interval,
    format_seeds,
    format_value,
)
from driftline.report.tables import latex
from driftline.report.tables.captions import caption, formulas, notes

MOST_COLUMNS = 8  # of numbers in LaTeX: more are too small to read once they fit the page


def result_table(record: Record) -> tuple[ResultTable, ...]:
    """One table for each group of comparable runs."""
    return tuple(tabulate(group) for group in groups(record))


def render(tables: Sequence[ResultTable], format: str) -> str:
    """The tables as text: `md`, `latex` or `csv`."""
    if format not in FORMATS:
        raise unknown("format", format, FORMATS)
    return FORMATS[format](tables)


def _caption(table: ResultTable) -> str:
    """What was run on what under which protocol, with how many seeds; the rest of the card is in the notes."""
    protocol = table.group.card["protocol"].get("protocol")
    said = [f"Protocol: {protocol}."] if protocol else []
    return " ".join([caption(table), *said, f"Seeds per method: {count_range([row.seeds for row in table.rows])}."])


def _markdown(tables: Sequence[ResultTable]) -> str:
    return "\n".join(_markdown_table(table) for table in tables)


def _markdown_table(table: ResultTable) -> str:
    names = ["method", *(column.title for column in table.columns), "GMAC", "seeds"]
    lines = [
        f"### {plain_md(table.group.title)}",
        "",
        piped(names),
        piped([":--", *(["--:"] * (len(names) - 1))]),
        *(piped(_markdown_row(table, row)) for row in table.lines()),
        "",
        plain_md(_caption(table)),
        *map(plain_md, notes(table)),
        "",
        *(f"- {name}: {plain_md(formula)}" for name, formula in formulas(table)),
        *_markdown_choices(table),
    ]
    return "\n".join(lines) + "\n"


def _markdown_choices(table: ResultTable) -> list[str]:
    """Which settings were chosen, if any were, and what that took."""
    rows = [piped([plain_md(cell) for cell in one.cells]) for one in chosen(table.group)]
    return ["", piped(HEADER), piped([":--", ":--", ":--", *["--:"] * 4]), *rows] if rows else []


def _markdown_row(table: ResultTable, row: Row) -> list[str]:
    def cell_text(column: Column, cell: Cell | None) -> str:
        if cell is None:
            return NONE
        value = format_value(cell.value, column.share)
        beside = (format_interval(cell, column.share), format_false_alarm(cell.false_alarm))
        return " ".join([f"**{value}**" if cell.leads else value, *filter(None, beside)])

    cells = (cell_text(column, cell) for column, cell in zip(table.columns, row.cells, strict=True))
    return [plain_md(row.method), *cells, format_amount(row.gmac), format_seeds(row.seeds)]


def piped(cells: Sequence[str]) -> str:
    """A line of a Markdown table."""
    return f"| {' | '.join(cells)} |"


def plain_md(text: str) -> str:
    """Text that Markdown shows as it is."""
    return "".join(f"\\{c}" if c in "\\|<*`" else c for c in " ".join(text.split())).replace("](", "]\\(")


def _latex(tables: Sequence[ResultTable]) -> str:
    return latex.NEEDS + "\n".join(_latex_table(table) for table in tables)


def _latex_table(table: ResultTable) -> str:
    names = ["method", *(f"{column.word}\N{NO-BREAK SPACE}{column.arrow}" for column in table.columns), "GMAC", "seeds"]
    stats = ["", *(f"{column.stat}{', %' if column.share else ''}" for column in table.columns), "per run", ""]
    under = " ".join([*notes(table), *(f"{name}: {formula}." for name, formula in formulas(table))])
    heads = [latex.heading(names), [latex.tiny(stat) for stat in stats]]
    rows = [line for row in table.lines() for line in _latex_row(table, row)]
    choices = _latex_choices(table)
    return latex.environment(table.group.title, _caption(table), heads, rows, under, MOST_COLUMNS, choices)


def _latex_choices(table: ResultTable) -> list[str]:
    """Which settings were chosen, if any were, and what that took, under the numbers."""
    rows = [[latex.named(one.cells[0]), *map(latex.tex, one.cells[1:])] for one in chosen(table.group)]
    return [latex.part([latex.heading(HEADER)], rows)] if rows else []


def _latex_row(table: ResultTable, row: Row) -> tuple[list[str], list[str]]:
    """The numbers, and under them their intervals."""
    values, intervals = [latex.named(row.method)], [""]
    for column, cell in zip(table.columns, row.cells, strict=True):
        value = latex.tex(format_value(cell.value if cell else None, column.share))
        values.append(f"\\textbf{{{value}}}" if cell and cell.leads else value)
        beside = (format_interval(cell, column.share), format_false_alarm(cell.false_alarm)) if cell else ()
        intervals.append(latex.tiny(" ".join(filter(None, beside))))
    values += [latex.tex(format_amount(row.gmac)), latex.tex(format_seeds(row.seeds))]
    return values, [*intervals, "", ""]


def _csv(tables: Sequence[ResultTable]) -> str:
    writer = CsvText()
    header = "group method metric stat value low high interval seeds n unit best false_alarm"
    writer.writerow(header.split())
    for table in tables:
        for row in table.lines():
            for column, cell in zip(table.columns, row.cells, strict=True):
                if cell:
                    numbers = (repr(cell.value), repr(cell.low), repr(cell.high), cell.interval)
                    what = (table.group.title, row.method, column.metric, column.stat)
                    rate = "" if math.isnan(cell.false_alarm) else repr(cell.false_alarm)
                    writer.writerow([*what, *numbers, cell.seeds, cell.n, cell.unit, int(cell.leads), rate])
            if row.gmac is not None:
                what = (table.group.title, row.method, "gmac", "mean")
                writer.writerow([*what, repr(row.gmac), "", "", "", row.seeds, row.seeds, "runs", 0, ""])
        for one in chosen(table.group):
            for name, value in one.numbers.items():
                what = (table.group.title, one.method, f"selection by {one.rule}", name)
                writer.writerow([*what, "" if value is None else value, "", "", "", 0, one.trials, "trials", 0, ""])
    return str(writer)


FORMATS: dict[str, Callable[[Sequence[ResultTable]], str]] = {"md": _markdown, "latex": _latex, "csv": _csv}
