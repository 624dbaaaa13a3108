"""When the label of each row of a table became known: a column of times, or a delay such as 60d."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from driftline.data.formats.time_column import parse_times
from driftline.errors import UserError, shorten

UNITS = {"min": 1, "h": 60, "d": 24 * 60, "w": 7 * 24 * 60}  # in minutes
CENTURY = 100 * 366 * 24 * 60  # in minutes; far longer delays would overflow the clock, and be in the past


def parse_label_times(
    column: pd.Series, when: np.ndarray, date_format: str | None = None
) -> tuple[np.ndarray, list[str]]:
    """Return when labels became known, and notes on them; `when` are the times of the rows.

    A missing time means that the label never becomes known.
    """
    given = column.notna().to_numpy()
    if not given.any():
        raise UserError(f"label time column '{column.name}' is empty")
    dated = when.dtype.kind == "M"
    times, _ = parse_times(column[given], "auto" if dated else "number", date_format if dated else None)
    if (times.dtype.kind == "M") != dated:
        kind, other = ("dates", "numbers") if dated else ("numbers", "dates")
        raise UserError(f"the time column has {kind} and label time column '{column.name}' has {other}: use one clock")
    known = np.full(len(column), np.datetime64("NaT", "us") if dated else np.nan)
    known[given] = times
    notes = []
    if missing := int((~given).sum()):
        notes.append(f"{missing:,} labels have no '{column.name}' and are never revealed")
    if early := int((known < when).sum()):
        notes.append(f"{early:,} labels were known before the time of their rows")
    return known, notes


def delayed(when: np.ndarray, delay: str) -> np.ndarray:
    """Return when labels are known that come this long after their rows.

    >>> delayed(np.array(["2024-01-01"], "datetime64[us]"), "60d").astype("datetime64[D]").tolist()
    [datetime.date(2024, 3, 1)]
    """
    match = re.fullmatch(r"(\d+) ?(min|h|d|w)", delay.strip())
    if match is None:
        raise UserError(f"delay '{delay}': give a number of periods, or a time such as 12h, 60d or 8w")
    if when.dtype.kind != "M":
        raise UserError(f"delay '{delay}': the time column has numbers, not dates; give a number of periods")
    if (minutes := int(match[1]) * UNITS[match[2]]) > CENTURY:
        raise UserError(f"delay '{shorten(delay)}' is longer than a century")
    known: np.ndarray = when + np.timedelta64(minutes, "m")
    return known
