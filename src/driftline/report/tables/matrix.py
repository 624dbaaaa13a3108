"""Tables of methods by benchmarks."""

from __future__ import annotations

from collections.abc import Iterator

from driftline.record.run import Record
from driftline.report.analysis.highlights import Highlight
from driftline.report.analysis.matrix import MatrixCell, MatrixColumn, MatrixView, require_views
from driftline.report.format import NONE, format_decimal, format_interval, format_percent
from driftline.report.tables.captions import budget_notes, unequal_notes
from driftline.report.tables.model import Record as CsvRecord
from driftline.report.tables.model import Table, TableCell, TableColumn, TableRow, bold_note

REVEALED = {"inputs": "inputs only", "errors": "labels of errors", "labels": "all labels"}
READING = (
    "A cell: the primary metric of the benchmark with its 95% interval, the difference from {baseline} (paired by "
    "seed), the rank in its column, and the labels that the method sees. {bold} Columns are not comparable with each "
    "other."
)


def matrix_tables(record: Record) -> list[Table]:
    """Return a table for each matrix that the runs belong to."""
    return [matrix_table(view) for view in require_views(record)]


def matrix_table(view: MatrixView) -> Table:
    """Return a matrix as a table."""
    return Table(
        title=view.title,
        row_header="method",
        columns=tuple(map(_column, view.columns)),
        rows=tuple(
            TableRow(method, tuple(_cell(view, column, cell) for column, cell in view.row(method)))
            for method in view.methods
        ),
        notes=tuple(notes(view)),
        caption="Results of each method in each benchmark.",
        footnotes=tuple(view.reasons),
        records=tuple(_records(view)),
    )


def notes(view: MatrixView) -> list[str]:
    """Return the notes of a matrix; the reasons for empty cells are footnotes."""
    baselines = dict.fromkeys(column.baseline for column in view.columns if column.baseline)
    names = " or, where that cannot run, ".join(baselines) or "a baseline, if run"
    found = [READING.format(baseline=names, bold=bold_note())]
    found += [_column_note(view, column) for column in view.columns if column.metric]
    for column in view.columns:
        cells = [view.cells[method, column.benchmark] for method in view.methods]
        own = [cell.label for cell, method in zip(cells, view.methods, strict=True) if cell.label != method]
        found += [f"Settings in {column.benchmark}: {'; '.join(own)}."] if own else []
    groups = {column.benchmark: column.group for column in view.columns if column.group}
    found += budget_notes(groups.values())
    found += [f"{name}: {line}" for name, group in groups.items() for line in unequal_notes(group)]
    if view.ranks:
        order = sorted(view.ranks.items(), key=lambda pair: (pair[1], pair[0]))
        each = ", ".join(f"{method} {value:.2f}" for method, value in order)
        found.append(f"Mean ranks of the methods that run in all columns with two methods or more: {each}.")
    return found


def finding(view: MatrixView) -> str:
    """Return the title of a matrix: who is best or tied where."""
    best = {method: [view.is_bold(column, c) for column, c in view.row(method) if c.score] for method in view.methods}
    wins = {method: sum(cells) for method, cells in best.items()}
    top = max(wins, key=lambda method: wins[method], default="")
    if not top or not wins[top]:
        return "Not certain yet which method is best"
    if wins[top] == len(best[top]) > 1:
        return f"{top} is best or tied wherever it can run"
    where = f"{wins[top]} of {len(view.columns)} benchmarks"
    return f"No method is best everywhere; {top} is best or tied in {where}"


def _column_note(view: MatrixView, column: MatrixColumn) -> str:
    metric = column.metric
    assert metric is not None
    scores = [score for method in view.methods if (score := view.cells[method, column.benchmark].score)]
    n = f" (n = {min(one.n for one in scores):,} {scores[0].unit} for each of {view.seeds} seed(s))" if scores else ""
    return f"{column.benchmark}, {column.setting}: {metric.name} {metric.arrow}, {metric.formula}{n}."


def _column(column: MatrixColumn) -> TableColumn:
    metric = column.metric
    if metric is None:
        return TableColumn(column.benchmark, left=True)
    return TableColumn(
        name=column.benchmark,
        detail=metric.title,
        title=f"{column.benchmark}: {metric.title}",
        format=format_percent if metric.share else format_decimal,
        left=True,
    )


def _cell(view: MatrixView, column: MatrixColumn, cell: MatrixCell) -> TableCell:
    footnote = f"({view.reasons.index(cell.short_reason) + 1})" if cell.reason else ""
    if cell.score is None or column.metric is None:
        return TableCell(f"{NONE} {footnote}".rstrip())
    gain = f"{format_gain(column, cell)} {format_gain_interval(column, cell)}".strip()
    rank = f"rank {format_rank(cell)}" if cell.rank is not None else ""
    comparison = ", ".join(filter(None, (gain, rank)))
    return TableCell(cell.score, Highlight(bold=cell.score.best), footnote, (comparison, format_labels(column, cell)))


def format_gain(column: MatrixColumn, cell: MatrixCell) -> str:
    """Return the signed difference from the baseline, in percentage points where the metric is a share."""
    if cell.gain is None or column.metric is None:
        return ""
    return f"{100 * cell.gain.value:+.1f}" if column.metric.share else f"{cell.gain.value:+.2f}"


def format_gain_interval(column: MatrixColumn, cell: MatrixCell) -> str:
    """Return the interval of the difference from the baseline, which needs two seeds."""
    return format_interval(cell.gain, column.metric.share) if cell.gain and column.metric else ""


def format_rank(cell: MatrixCell) -> str:
    """Return the rank of a method.

    >>> format_rank(MatrixCell("ft", "labels", "", rank=2.0)), format_rank(MatrixCell("ft", "labels", "", rank=1.5))
    ('2', '1.5')
    """
    return "" if cell.rank is None else f"{cell.rank:g}"


def format_labels(column: MatrixColumn, cell: MatrixCell) -> str:
    """Return what the benchmark reveals, and what the method needs if that is less.

    >>> format_labels(MatrixColumn("timeline", "How long?", "labels"), MatrixCell("tent", "inputs", ""))
    'all labels, needs inputs only'
    """
    needs = "" if cell.uses == column.reveals else f", needs {REVEALED[cell.uses]}"
    return f"{REVEALED[column.reveals]}{needs}"


def _records(view: MatrixView) -> Iterator[CsvRecord]:
    for method in view.methods:
        for column, cell in view.row(method):
            score, metric, gain = cell.score, column.metric, cell.gain
            yield {
                **{"matrix": view.title, "benchmark": column.benchmark, "method": method, "label": cell.label},
                **{"metric": metric.metric if metric else "", "stat": metric.stat if metric else ""},
                **{name: repr(getattr(score, name)) if score else "" for name in ("value", "low", "high")},
                **{name: getattr(score, name) if score else "" for name in ("interval", "seeds", "n", "unit")},
                "best": int(score.best) if score else "",
                "rank": "" if cell.rank is None else cell.rank,
                "reference": column.baseline if gain else "",
                **{name: repr(getattr(gain, key)) if gain else "" for name, key in GAIN.items()},
                **{"revealed": REVEALED[column.reveals], "uses": REVEALED[cell.uses], "reason": cell.reason},
            }


GAIN = {"gain": "value", "gain_low": "low", "gain_high": "high"}
