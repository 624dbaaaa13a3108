"""Tables of results: methods by headline metrics."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from driftline.errors import unknown_name
from driftline.record.run import Record
from driftline.report.analysis.displays import Display, Displays, displays, place, with_class_names
from driftline.report.analysis.groups import groups
from driftline.report.analysis.highlights import Highlight
from driftline.report.analysis.result_table import (
    Column,
    ResultTable,
    Row,
    Score,
    metric_names,
    selected_columns,
    tabulate,
)
from driftline.report.analysis.selected_settings import HEADER, selected_settings
from driftline.report.analysis.trivial_baseline import NAME as TRIVIAL
from driftline.report.format import (
    NONE,
    count_range,
    format_amount,
    format_decimal,
    format_false_alarm,
    format_percent,
)
from driftline.report.tables.arrange import relabel
from driftline.report.tables.captions import caption, formulas, notes
from driftline.report.tables.model import Record as CsvRecord
from driftline.report.tables.model import Table, TableCell, TableColumn, TableRow, text_columns, text_row

MAX_COLUMNS = 8  # of numbers in LaTeX: more would be too small to read


def result_tables(
    record: Record, metrics: Sequence[str] = (), methods: Sequence[str] = (), order: str = ""
) -> list[Table]:
    """Return one table for each group of comparable runs.

    `metrics`: `METRIC` or `METRIC:STAT`, by default the headline metrics. `methods`: the order of the rows. `order`: a
    metric that sorts the rows instead, best first.
    """
    members, shown = groups(record), displays(record)
    for name in metrics:
        if not any(selected_columns(group, [name]) for group in members):
            raise unknown_name("metric", name, set().union(*map(metric_names, members)))
    found = [table for group in members if (table := tabulate(group, metrics)).columns or not metrics]
    if order and not any(column.is_called(order) for table in found for column in table.columns):
        raise unknown_name("metric", order, {column.metric for table in found for column in table.columns})
    if methods:
        found = [replace(table, trivial=table.trivial if TRIVIAL in methods else None) for table in found]
    return [result_table(_sorted(table, methods, order, shown), shown) for table in found]


def _sorted(results: ResultTable, methods: Sequence[str], order: str, shown: Displays) -> ResultTable:
    """Return the results with rows in order: those without a group first, then one group after the other."""
    rows = list(results.rows)
    if methods:
        rows.sort(key=lambda row: place(results.group, row.method, shown, methods))
    for column in [column for column in results.columns if column.is_called(order)][:1]:
        scores, sign = results.scores(column), -1 if column.better == "higher" else 1
        rows.sort(key=lambda row: sign * scores[row.method].value if row.method in scores else math.inf)
    headings = ["", *dict.fromkeys(shown[row.method].group for row in rows)]
    rows.sort(key=lambda row: headings.index(shown[row.method].group))
    return replace(results, rows=tuple(rows))


def result_table(results: ResultTable, shown: Displays | None = None) -> Table:
    """Return the results of a group as a table, with selected settings below."""
    gmac, seeds = TableColumn("GMAC", "per run"), TableColumn("seeds")
    rows: list[TableRow] = []
    for row in results.rows:
        display = (shown or {}).get(row.method) or Display(row.method)
        for one in (row, *results.published[row.method]):
            name = display.label + one.method.removeprefix(row.method)
            rows.append(replace(_row(one), name=name, group=display.group))
    return Table(
        title=results.group.title,
        row_header="method",
        columns=(*map(_column, results.columns), gmac, seeds),
        rows=(*rows, *([_row(results.trivial)] if results.trivial else [])),
        notes=with_class_names(notes(results), shown or {}),
        caption=_caption(results),
        definitions=tuple(formulas(results)),
        below=_selected_settings(results, shown or {}),
        records=tuple(_records(results)),
        max_columns=MAX_COLUMNS,
    )


def _caption(results: ResultTable) -> str:
    """Return the data, the protocol and the number of seeds."""
    protocol = results.group.card.protocol.get("protocol")
    named = [f"Protocol: {protocol}."] if protocol else []
    seeds = f"Seeds per method: {count_range([row.seeds for row in results.rows])}."
    return " ".join([caption(results), *named, seeds])


def _column(column: Column) -> TableColumn:
    return TableColumn(
        name=f"{column.word}\N{NO-BREAK SPACE}{column.arrow}",
        detail=f"{column.stat}{', %' if column.share else ''}",
        title=column.title,
        format=format_percent if column.share else format_decimal,
        key=f"{column.metric}:{column.stat}",
    )


def _row(row: Row) -> TableRow:
    cells = (_cell(score) if score else None for score in row.cells)
    return TableRow(
        row.method, (*cells, TableCell(format_amount(row.gmac)), TableCell(str(row.seeds) if row.seeds else NONE))
    )


def _cell(score: Score) -> TableCell:
    return TableCell(score, Highlight(bold=score.best), format_false_alarm(score.false_alarm))


def _selected_settings(results: ResultTable, shown: Displays) -> Table | None:
    found = selected_settings(results.group)
    if not found:
        return None
    rows = tuple(text_row(*one.cells) for one in found)
    return relabel([Table("", HEADER[0], text_columns(*HEADER[1:], left=3), rows)], shown)[0]


def _records(results: ResultTable) -> Iterator[CsvRecord]:
    for row in results.all_rows():
        for column, score in zip(results.columns, row.cells, strict=True):
            if score:
                yield _record(results, row.method, column.metric, column.stat) | {
                    **{"value": repr(score.value), "low": repr(score.low), "high": repr(score.high)},
                    **{"interval": score.interval, "seeds": score.seeds, "n": score.n, "unit": score.unit},
                    "best": int(score.best),
                    "false_alarm": "" if math.isnan(score.false_alarm) else repr(score.false_alarm),
                }
        if row.gmac is not None:
            counts = {"value": repr(row.gmac), "seeds": row.seeds, "n": row.seeds, "unit": "runs"}
            yield _record(results, row.method, "gmac", "mean") | counts
    for one in selected_settings(results.group):
        for name, value in one.numbers.items():
            counts = {"value": "" if value is None else value, "n": one.runs, "unit": "search runs"}
            yield _record(results, one.method, f"selection by {one.rule}", name) | counts


def _record(results: ResultTable, method: str, metric: str, stat: str) -> CsvRecord:
    named = {"group": results.group.title, "method": method, "metric": metric, "stat": stat}
    number = {"value": "", "low": "", "high": "", "interval": "", "seeds": 0, "n": 0, "unit": ""}
    return {**named, **number, "best": 0, "false_alarm": ""}
