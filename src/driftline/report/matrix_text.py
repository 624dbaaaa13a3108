"""A matrix of methods and benchmarks as text: Markdown to read, LaTeX to print, CSV to compute with."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from driftline.errors import unknown
from driftline.plain import CsvText
from driftline.record import Record
from driftline.report import latex
from driftline.report.matrix import SHOWN, Head, Square, View, views
from driftline.report.results import NONE, shown, shown_interval
from driftline.report.tables import piped, plain_md

READING = (
    "A cell: the benchmark's headline number with its 95% interval, the difference from {still} (paired by seed), the "
    "rank among the methods of its column, and what the method is shown there. Bold: the best of a column and all that "
    "cannot be told from it (paired t test on common seeds at 5%, Holm-corrected; it takes three seeds). Columns are "
    "not comparable with one another."
)
SAID = 20  # letters in a line that says what is shown
HEADER = (
    "matrix benchmark method label metric stat value low high interval seeds n unit best rank reference gain gain_low "
    "gain_high revealed uses reason"
)


def render(found: Sequence[View], format: str) -> str:
    """The matrices as text: `md`, `latex` or `csv`."""
    if format not in FORMATS:
        raise unknown("format", format, FORMATS)
    return FORMATS[format](found)


def on_page(record: Record) -> dict[str, Any]:
    """What the template of the page needs to show the matrices that these runs belong to."""
    placed = [{"view": view, "anchor": f"matrix-{k}", "notes": notes(view)} for k, view in enumerate(views(record))]
    words = {"words": SHOWN, "labels": shown_labels, "rank": shown_rank}
    return {"matrices": placed, **words, "gain": shown_gain, "gain_interval": shown_gain_interval}


def notes(view: View) -> list[str]:
    """What stands under a matrix; why squares are empty is said apart."""
    still = dict.fromkeys(head.reference for head in view.heads if head.reference)
    said = [READING.format(still=", or where that cannot run from ".join(still) or "a baseline, if run")]
    said += [_column_note(view, head) for head in view.heads if head.column]
    for head in view.heads:
        squares = [view.squares[method, head.benchmark] for method in view.methods]
        own = [square.label for square, method in zip(squares, view.methods, strict=True) if square.label != method]
        said += [f"Settings in {head.benchmark}: {'; '.join(own)}."] if own else []
    if view.ranks:
        order = sorted(view.ranks.items(), key=lambda pair: (pair[1], pair[0]))
        each = ", ".join(f"{method} {value:.2f}" for method, value in order)
        said.append(f"Mean ranks among the methods that run in all columns in which two or more do: {each}.")
    return said


def _column_note(view: View, head: Head) -> str:
    column = head.column
    assert column is not None
    cells = [cell for method in view.methods if (cell := view.squares[method, head.benchmark].cell)]
    n = f" (n = {min(cell.n for cell in cells):,} {cells[0].unit} for each of {view.seeds} seed(s))" if cells else ""
    return f"{head.benchmark}, {head.setting}: {column.name} {column.arrow}, {column.formula}{n}."


def shown_gain(head: Head, square: Square) -> str:
    """The signed difference from the method that stands still, in points where the number is a percentage."""
    if square.gain is None or head.column is None:
        return ""
    return f"{100 * square.gain.value:+.1f}" if head.column.share else f"{square.gain.value:+.2f}"


def shown_gain_interval(head: Head, square: Square) -> str:
    """Its interval, if two seeds or more say it."""
    if square.gain is None or head.column is None or math.isnan(square.gain.low):
        return ""
    return f"[{shown(square.gain.low, head.column.share)}, {shown(square.gain.high, head.column.share)}]"


def shown_rank(square: Square) -> str:
    """
    >>> shown_rank(Square("ft", "labels", "", rank=2.0)), shown_rank(Square("ft", "labels", "", rank=1.5))
    ('2', '1.5')
    """
    return "" if square.rank is None else f"{square.rank:g}"


def shown_labels(head: Head, square: Square) -> str:
    """What the benchmark shows, and what the method can do with, if that is less.

    >>> shown_labels(Head("timeline", "How long?", "labels"), Square("tent", "inputs", ""))
    'all labels, needs inputs only'
    """
    needs = "" if square.uses == head.reveals else f", needs {SHOWN[square.uses]}"
    return f"{SHOWN[head.reveals]}{needs}"


def _markdown(found: Sequence[View]) -> str:
    return "\n".join(_markdown_view(view) for view in found)


def _markdown_view(view: View) -> str:
    def cell(head: Head, square: Square) -> str:
        if square.cell is None or head.column is None:
            return f"{NONE} ({view.reasons.index(square.why) + 1})"
        value, gain, place = shown(square.cell.value, head.column.share), shown_gain(head, square), shown_rank(square)
        number = f"**{value}**" if square.cell.leads else value
        said = [f"{number} {shown_interval(square.cell, head.column.share)}".rstrip()]
        said += [f"{gain} {shown_gain_interval(head, square)}".rstrip()] if gain else []
        said += [f"rank {place}"] if place else []
        lost = [f"({view.reasons.index(square.why) + 1})"] if square.reason else []
        return " · ".join([*said, shown_labels(head, square), *lost])

    lines = [
        f"### {plain_md(view.title)}",
        "",
        piped(["method", *(plain_md(_head(head)) for head in view.heads)]),
        piped([":--", *([":--"] * len(view.heads))]),
        *(piped([plain_md(m), *(cell(head, square) for head, square in view.row(m))]) for m in view.methods),
        "",
        *map(plain_md, notes(view)),
        "",
        *(f"{k}. {plain_md(reason)}" for k, reason in enumerate(view.reasons, start=1)),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _head(head: Head) -> str:
    return f"{head.benchmark}: {head.column.title}" if head.column else head.benchmark


def _latex(found: Sequence[View]) -> str:
    return latex.NEEDS + "\n".join(_latex_view(view) for view in found)


def _latex_view(view: View) -> str:
    why = [f"({k}) {reason}." for k, reason in enumerate(view.reasons, start=1)]
    names = ["method", *(head.benchmark for head in view.heads)]
    under = ["", *(head.column.title if head.column else "" for head in view.heads)]
    heads = [[*map(latex.tex, names)], [latex.tiny(text, latex.HEAD) for text in under]]
    rows = [line for method in view.methods for line in _latex_rows(view, method)]
    caption = f"{view.title}: what each method reaches in each benchmark."
    return latex.environment(view.title, caption, heads, rows, " ".join([*notes(view), *why]))


def _latex_rows(view: View, method: str) -> list[list[str]]:
    """The numbers, under them their intervals, then differences and ranks, then what is shown."""
    rows = [[latex.named(method)], [""], [""], [""]]
    for head, square in view.row(method):
        if square.cell is None or head.column is None:
            parts = (latex.tex(f"{NONE} ({view.reasons.index(square.why) + 1})"), "", "", "")
        else:
            value = latex.tex(shown(square.cell.value, head.column.share))
            place = f"rank {shown_rank(square)}" if square.rank is not None else ""
            apart = f"{shown_gain(head, square)} {shown_gain_interval(head, square)}".strip()
            gain = ", ".join(filter(None, (apart, place)))
            number = f"\\textbf{{{value}}}" if square.cell.leads else value
            interval = shown_interval(square.cell, head.column.share)
            parts = (number, latex.tiny(interval), latex.tiny(gain), latex.tiny(shown_labels(head, square), SAID))
        for row, part in zip(rows, parts, strict=True):
            row.append(part)
    return [row for row in rows if any(row)]


def _csv(found: Sequence[View]) -> str:
    writer = CsvText()
    writer.writerow(HEADER.split())
    for view in found:
        for method in view.methods:
            for head, square in view.row(method):
                writer.writerow([view.title, head.benchmark, method, square.label, *_numbers(head, square)])
    return str(writer)


def _numbers(head: Head, square: Square) -> list[object]:
    cell, column, gain = square.cell, head.column, square.gain
    what = [column.metric, column.stat] if column else ["", ""]
    if cell is None:
        number: list[object] = [""] * 8
    else:
        ends = (repr(cell.value), repr(cell.low), repr(cell.high), cell.interval)
        number = [*ends, cell.seeds, cell.n, cell.unit, int(cell.leads)]
    place = "" if square.rank is None else square.rank
    apart = ["", "", "", ""] if gain is None else [head.reference, repr(gain.value), repr(gain.low), repr(gain.high)]
    return [*what, *number, place, *apart, SHOWN[head.reveals], SHOWN[square.uses], square.reason]


FORMATS: dict[str, Callable[[Sequence[View]], str]] = {"md": _markdown, "latex": _latex, "csv": _csv}
