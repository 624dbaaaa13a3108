"""Tables as text: Markdown to read, LaTeX to print, CSV to compute with."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from driftline.errors import unknown_name
from driftline.report.tables import csv, latex, markdown
from driftline.report.tables.model import Table

FORMATS: dict[str, Callable[[Sequence[Table]], str]] = {"md": markdown.write, "latex": latex.write, "csv": csv.write}


def render(tables: Sequence[Table], format: str) -> str:
    """Return tables as text in the format `md`, `latex` or `csv`."""
    if format not in FORMATS:
        raise unknown_name("format", format, FORMATS)
    return FORMATS[format](tables)
