"""Files with one JSON record per line, plain or gzipped, read line by line so that their size does not matter.

A malformed record raises a ValueError that names its line; read inside `io.locate.file_errors`, which names the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from driftline.io import bounded_files
from driftline.types import JsonObject

SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")  # escaped; a pair of them is one character, one alone is none
EPOCH = np.timedelta64(date(1970, 1, 1).toordinal(), "D")


def iter_records(path: Path) -> Iterator[tuple[int, JsonObject]]:
    """Yield every record with its line number, from 1; empty lines are skipped."""
    with bounded_files.open_file(path) as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                yield number, _record(number, line)


def load_json(path: Path) -> Any:
    """Return the content of a file that is one JSON value, plain or gzipped."""
    with bounded_files.open_file(path) as file:
        return parse_json(file.read())


def parse_json(raw: bytes) -> Any:
    """Return a JSON value whose texts are all valid Unicode."""
    try:
        value = json.loads(raw.decode("utf-8-sig"))
        if SURROGATE.search(raw):
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("JSON that is nested too deeply") from None
    except UnicodeError:
        raise ValueError("a text that is not valid Unicode, such as half of a surrogate pair") from None
    return value


def text_field(record: JsonObject, field: str, line: int, *, empty: bool = True) -> str:
    """Return a field that must be a text."""
    value = record.get(field)
    if not isinstance(value, str) or not (empty or value.strip()):
        raise ValueError(f"{value!r} as '{field}' in line {line}, not a text")
    return value


def day_field(record: JsonObject, field: str, line: int) -> date:
    """Return the day of a field such as 2018-05-01, with or without a time after it."""
    value = text_field(record, field, line)
    try:
        return date.fromisoformat(value[:10])
    except ValueError:
        raise ValueError(f"{value!r} as '{field}' in line {line}, not a date such as 2018-05-01") from None


def to_days(dates: Sequence[date]) -> np.ndarray:
    """Return dates as a numpy array of days.

    >>> to_days([date(2018, 5, 1)])
    array(['2018-05-01'], dtype='datetime64[D]')
    """
    return np.array([one.toordinal() for one in dates], np.int64).astype("datetime64[D]") - EPOCH


def _record(number: int, line: bytes) -> JsonObject:
    try:
        record = parse_json(line)
    except ValueError as error:
        raise ValueError(f"line {number} is no JSON ({error})") from error
    if not isinstance(record, dict):
        raise ValueError(f"{str(record)[:40]!r} in line {number}, not a record")
    return record
