"""Tables as text: Markdown to read, LaTeX to print, CSV to compute with, HTML for a notebook."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from driftline.errors import UserError, unknown_name
from driftline.report.tables import csv, html, latex, markdown
from driftline.report.tables.model import Table

FORMATS: dict[str, Callable[[Sequence[Table]], str]] = {"md": markdown.write, "latex": latex.write, "csv": csv.write}


@dataclass(frozen=True, repr=False)
class Tables:
    """Tables that a notebook shows and `print` writes as Markdown."""

    tables: tuple[Table, ...]
    arranged: bool = False
    """Whether columns, decimals, caption or notes were chosen."""

    def text(self, format: str = "md") -> str:
        """Return the tables as `md`, `latex` or `csv`."""
        if format == "csv" and self.arranged:
            raise UserError(
                "csv has one line for each number: --columns, --precision, --caption, --label, --transpose and "
                "--no-notes are for md and latex"
            )
        return render(self.tables, format)

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html.write(self.tables)


def render(tables: Sequence[Table], format: str) -> str:
    """Return tables as text in the format `md`, `latex` or `csv`."""
    if format not in FORMATS:
        raise unknown_name("format", format, FORMATS)
    return FORMATS[format](tables)
