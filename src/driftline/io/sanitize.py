"""Escape texts from records for terminals and spreadsheets."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

# Control characters except line ends and tabs, and those that change the direction of writing.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def escape_control(text: str) -> str:
    """Return the text with control characters written as escapes.

    >>> print(escape_control("er\\x1b[31m"))
    er\\x1b[31m
    """
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def escape_formula(value: object) -> Any:
    """Return a value with an apostrophe before it if it is a text that a spreadsheet would take for a formula.

    >>> escape_formula("=1+1"), escape_formula("-0.5"), escape_formula(-3), escape_formula("er")
    ("'=1+1", '-0.5', -3, 'er')
    """
    if not isinstance(value, str) or not value.lstrip().startswith(("=", "+", "-", "@")):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value


class CsvWriter:
    """CSV that is written row by row."""

    def __init__(self) -> None:
        self._out = io.StringIO()
        self._writer = csv.writer(self._out, lineterminator="\n")

    def writerow(self, row: Iterable[object]) -> None:
        """Add a row."""
        self._writer.writerow([escape_formula(value) for value in row])

    def __str__(self) -> str:
        return self._out.getvalue()


def frame_to_csv(frame: pd.DataFrame) -> str:
    """Return a frame as CSV, without its index."""
    texts = frame.select_dtypes(exclude=["number", "bool", "datetime"]).columns
    safe = frame.assign(**{name: frame[name].map(escape_formula) for name in texts})
    return str(safe.rename(columns=escape_formula).to_csv(index=False))
