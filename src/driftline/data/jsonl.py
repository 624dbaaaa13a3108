"""Files with one JSON record per line, plain or gzipped, read line by line so that their size does not matter.

What is wrong with a record is a ValueError that names its line; read inside `data.reading`, which names the file.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

EPOCH = np.timedelta64(date(1970, 1, 1).toordinal(), "D")


def records(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Every record with the number of its line, from 1; empty lines are passed over."""
    with (gzip.open if path.suffix == ".gz" else open)(path, "rb") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                yield number, _record(number, line)


def text(record: dict[str, Any], field: str, line: int, *, empty: bool = True) -> str:
    """A field that must hold a text."""
    value = record.get(field)
    if not isinstance(value, str) or not (empty or value.strip()):
        raise ValueError(f"{value!r} as '{field}' in line {line}, not a text")
    return value


def day(record: dict[str, Any], field: str, line: int) -> date:
    """The day of a field such as 2018-05-01, with or without a time after it."""
    value = text(record, field, line)
    try:
        return date.fromisoformat(value[:10])
    except ValueError:
        raise ValueError(f"{value!r} as '{field}' in line {line}, not a date such as 2018-05-01") from None


def days(dates: Sequence[date]) -> np.ndarray:
    """Days as numpy counts them.

    >>> days([date(2018, 5, 1)])
    array(['2018-05-01'], dtype='datetime64[D]')
    """
    return np.array([one.toordinal() for one in dates], np.int64).astype("datetime64[D]") - EPOCH


def _record(number: int, line: bytes) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"line {number} is no JSON ({error})") from error
    if not isinstance(record, dict):
        raise ValueError(f"{str(record)[:40]!r} in line {number}, not a record")
    return record
