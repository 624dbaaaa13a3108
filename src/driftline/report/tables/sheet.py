"""Tables of words and numbers, one thing per line, as text: Markdown, LaTeX or CSV."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from driftline.errors import unknown
from driftline.plain import CsvText
from driftline.report.tables import latex
from driftline.report.tables.result import piped, plain_md


@dataclass(frozen=True)
class Sheet:
    """Lines to read, and the same as rows to compute with; all sheets of a kind have rows with the same keys."""

    title: str
    head: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]
    rows: tuple[dict[str, Any], ...]
    notes: tuple[str, ...]


def render(sheets: Sequence[Sheet], format: str) -> str:
    """The sheets as text: `md`, `latex` or `csv`."""
    if format not in FORMATS:
        raise unknown("format", format, FORMATS)
    return FORMATS[format](sheets)


def _markdown(sheets: Sequence[Sheet]) -> str:
    return "\n".join(_markdown_sheet(sheet) for sheet in sheets)


def _markdown_sheet(sheet: Sheet) -> str:
    lines = [
        f"### {plain_md(sheet.title)}",
        "",
        piped(sheet.head),
        piped([":--", *(["--:"] * (len(sheet.head) - 1))]),
        *(piped([*map(plain_md, line)]) for line in sheet.lines),
        "",
        *map(plain_md, sheet.notes),
    ]
    return "\n".join(lines) + "\n"


def _latex(sheets: Sequence[Sheet]) -> str:
    return latex.NEEDS + "\n".join(_latex_sheet(sheet) for sheet in sheets)


def _latex_sheet(sheet: Sheet) -> str:
    caption = " ".join([f"{sheet.title}.", *sheet.notes])
    rows = [[*map(latex.named, line)] for line in sheet.lines]
    return latex.environment(sheet.title, caption, [latex.heading(sheet.head)], rows)


def _csv(sheets: Sequence[Sheet]) -> str:
    rows = [row for sheet in sheets for row in sheet.rows]
    writer = CsvText()
    for line in ([*rows[0]] if rows else [], *(row.values() for row in rows)):
        writer.writerow(line)
    return str(writer)


FORMATS: dict[str, Callable[[Sequence[Sheet]], str]] = {"md": _markdown, "latex": _latex, "csv": _csv}
