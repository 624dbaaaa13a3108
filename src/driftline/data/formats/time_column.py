"""The time column of a table: numbers as they are, everything else as moments in UTC.

Numbers that are all dates written as yyyymmdd or yyyymm are dates. If most of them are and some are not, such as
99991231 for no date, the caller must decide: cutting such numbers into blocks of rows would be silently wrong. Numbers
that all lie between September 2001 and 2100 as Unix seconds, milliseconds, microseconds or nanoseconds are times.
"""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
from pandas.api import types as kinds

from driftline.errors import UserError, unknown_name

CALENDAR = {"yyyymmdd": "%Y%m%d", "yyyymm": "%Y%m"}
YEAR_RANGE = (1800, 2200)  # whole numbers outside these years are not read as dates
KIND_HINT = "--column NAME=KIND in an audit, data.columns in a run"
FORMAT_HINT = "--date-format in an audit, data.date_format in a run"
UNIX = {"unix": 1, "unix-ms": 1_000, "unix-us": 1_000_000, "unix-ns": 1_000_000_000}  # units in a second
UNIX_RANGE = (1_000_000_000, 4_102_444_800)  # seconds, from September 2001 to 2099
OFFSET = r":\d\d(?:\.\d+)? ?([+-]\d\d:?\d\d|Z)$"  # a time zone after minutes or seconds
INEXACT = 2.0**53  # from here on, not every whole number is a float


def parse_times(column: pd.Series, kind: str = "auto", date_format: str | None = None) -> tuple[np.ndarray, list[str]]:
    """Return the times of a column and notes on how they were read; `kind` is date, number or auto.

    `date_format`: how texts or numbers are written, such as %d.%m.%Y, or unix, unix-ms, unix-us or unix-ns.
    """
    if kind not in ("auto", "date", "number"):
        raise unknown_name(f"kind of the time column '{column.name}':", kind, ["date", "number"])
    if missing := int(column.isna().sum()):
        raise UserError(f"time column '{column.name}' has {missing} missing values; drop those rows")
    check_plain(column, "time")
    if kinds.is_bool_dtype(column):
        raise UserError(f"time column '{column.name}' is true or false; expected numbers or dates")
    if isinstance(column.dtype, pd.PeriodDtype):
        column = column.dt.to_timestamp()
    if kinds.is_datetime64_any_dtype(column):
        return _in_utc(column), []
    if date_format is not None:
        return _formatted(column, date_format), []
    values = _numbers(column) if kinds.is_numeric_dtype(column) else _read(column)
    if values.dtype.kind == "M":
        return values, _zone_notes(column)
    if kind == "number":
        return values, []
    return _calendar_or_numbers(column, values, must=kind == "date")


def check_plain(column: pd.Series, role: str) -> None:
    """Refuse a column of bytes, lists or records."""
    kind = pd.api.types.infer_dtype(column, skipna=True)
    if kind in ("bytes", "mixed", "complex"):
        raise UserError(f"{role} column '{column.name}' holds {kind} values; expected numbers or texts")


def parse_moments(column: pd.Series) -> pd.Series:
    """Read texts as numbers or moments, in the way that suits most rows; missing where a row cannot be read so."""
    numbers = pd.to_numeric(column.astype(str), errors="coerce").replace([np.inf, -np.inf], np.nan)
    iso = pd.to_datetime(column, errors="coerce", utc=True, format="ISO8601")
    if not numbers.isna().any() or not iso.isna().any():
        return iso if numbers.isna().any() else numbers
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that no single format was found: the worst rows are reported
        month = pd.to_datetime(column, errors="coerce", utc=True)
        day = pd.to_datetime(column, errors="coerce", utc=True, dayfirst=True) if iso.isna().all() else iso
    if not month.isna().any() and not day.isna().any() and not month.equals(day):
        row = int(np.flatnonzero(month != day)[0])
        raise UserError(
            f"time column '{column.name}' can be read with the month or the day first: {column.iloc[row]!r} in row "
            f"{row + 1} under the header is {month.iloc[row]:%Y-%m-%d} or {day.iloc[row]:%Y-%m-%d}; say which, for "
            f"example %d/%m/%Y ({FORMAT_HINT})"
        )
    return max((numbers, iso, month, day), key=lambda read: read.notna().sum())


def calendar_form(values: np.ndarray) -> tuple[str | None, np.ndarray]:
    """Return the way in which most of the numbers are dates, if there is one, and which of the numbers are.

    >>> calendar_form(np.array([202212, 202301]))[0], calendar_form(np.array([1, 2]))[0]
    ('yyyymm', None)
    """
    for form, pattern in CALENDAR.items():
        scale = 10 ** (len(form) - 4)
        valid = (values == np.floor(values)) & (values >= YEAR_RANGE[0] * scale) & (values < YEAR_RANGE[1] * scale)
        valid[valid] = pd.to_datetime(_digits(values[valid]), format=pattern, errors="coerce").notna()
        if valid.sum() > len(values) / 2:
            return form, valid
    return None, np.zeros(len(values), bool)


def calendar_dates(values: np.ndarray, form: str) -> np.ndarray:
    """Return whole numbers of a form that `calendar_form` found as moments."""
    return pd.to_datetime(_digits(values), format=CALENDAR[form]).to_numpy("datetime64[us]")


def unix_unit(column: pd.Series, values: np.ndarray) -> str | None:
    """Return the unit in which all numbers are Unix times, if there is one; refuse what may be a date with hours.

    >>> unix_unit(pd.Series(dtype=float), np.array([1.7e12, 1.6e12]))
    'unix-ms'
    """
    low, high = UNIX_RANGE
    for name, scale in UNIX.items():
        if len(values) and values.min() >= low * scale and values.max() < high * scale:
            if name == "unix" and _hours(values):
                raise UserError(
                    f"time column '{column.name}' can be read as Unix seconds or as dates with hours (%Y%m%d%H), such "
                    f"as {values[0]:.0f}: say which, unix or %Y%m%d%H ({FORMAT_HINT})"
                )
            return name
    return None


def _hours(values: np.ndarray) -> bool:
    """Return whether all numbers are dates written as yyyymmddhh."""
    whole = bool((values == np.floor(values)).all())
    return whole and bool(pd.to_datetime(_digits(values), format="%Y%m%d%H", errors="coerce").notna().all())


def from_unix(values: np.ndarray, unit: str) -> np.ndarray:
    """Return Unix times as moments.

    >>> from_unix(np.array([1577836800.5]), "unix").tolist()
    [datetime.datetime(2020, 1, 1, 0, 0, 0, 500000)]
    """
    factor = 1_000_000 / UNIX[unit]
    whole = values // round(1 / factor) if factor < 1 else values * factor
    return np.asarray(whole).astype(np.int64).astype("datetime64[us]")


def _unix_title(unit: str) -> str:
    names = {"unix": "seconds", "unix-ms": "milliseconds", "unix-us": "microseconds", "unix-ns": "nanoseconds"}
    return f"Unix {names[unit]}"


def _formatted(column: pd.Series, date_format: str) -> np.ndarray:
    """Return times that are written in a given way."""
    if date_format in UNIX:
        numbers = pd.to_numeric(column.astype(str), errors="coerce") if column.dtype.kind not in "iuf" else column
        _check_read(column, numbers, date_format)
        return from_unix(_numbers(numbers), date_format)
    whole = kinds.is_float_dtype(column) and bool((column % 1 == 0).all())
    texts = (column.astype(np.int64) if whole else column).astype(str).str.strip()
    try:
        read = pd.to_datetime(texts, format=date_format, errors="coerce", utc=True)
    except ValueError as error:
        raise UserError(f"date format '{date_format}' cannot be used: {error} ({FORMAT_HINT})") from None
    _check_read(column, read, date_format)
    return _in_utc(read)


def _check_read(column: pd.Series, read: pd.Series, date_format: str) -> None:
    if read.isna().any():
        row = int(np.flatnonzero(read.isna())[0])
        raise UserError(
            f"time column '{column.name}' has {column.iloc[row]!r} in row {row + 1}, which is not written as "
            f"{date_format}: correct it, or the format ({FORMAT_HINT})"
        )


def _digits(values: np.ndarray) -> pd.Series:
    return pd.Series(values).astype(np.int64).astype(str)


def _calendar_or_numbers(column: pd.Series, values: np.ndarray, must: bool) -> tuple[np.ndarray, list[str]]:
    form, valid = calendar_form(values)
    unix = unix_unit(column, values) if form is None else None
    if unix is not None:
        note = f"time column '{column.name}' is read as {_unix_title(unix)}; if it is not, give it the kind number"
        return from_unix(values, unix), [f"{note} ({KIND_HINT})"]
    if form is None and not must:
        return values, []
    if form is None or not valid.all():
        row = 0 if form is None else int(np.flatnonzero(~valid)[0])
        claim = f"looks like {form}" if form else "should be dates"
        raise UserError(
            f"time column '{column.name}' {claim}, but {column.iloc[row]} in row {row + 1} is not such a date between "
            f"{YEAR_RANGE[0]} and {YEAR_RANGE[1] - 1}: correct it, or give the column the kind number ({KIND_HINT})"
        )
    note = f"time column '{column.name}' is read as dates written as {form}; if it is not, give it the kind number"
    return calendar_dates(values, form), [f"{note} ({KIND_HINT})"]


def _numbers(column: pd.Series) -> np.ndarray:
    values = column.to_numpy(np.int64 if kinds.is_integer_dtype(column) else np.float64)
    if infinite := int((~np.isfinite(values)).sum()):
        raise UserError(f"time column '{column.name}' has {infinite} missing or infinite values; drop those rows")
    return values


def _read(column: pd.Series) -> np.ndarray:
    best = parse_moments(column)
    if best.isna().any():
        row = int(np.flatnonzero(best.isna())[0])
        raise UserError(
            f"time column '{column.name}' has {column.iloc[row]!r} in row {row + 1} under the header; expected "
            f"numbers, or dates written in one way such as 2020-01-31; say how they are written with {FORMAT_HINT}"
        )
    if not kinds.is_numeric_dtype(best):
        return _in_utc(best)
    values = best.to_numpy()
    if np.abs(values).max() >= INEXACT and len(np.unique(values)) < column.nunique():
        raise UserError(
            f"time column '{column.name}' has numbers as large as {np.abs(values).max():.3g}, which are not exact: "
            "different times become equal; subtract the first one, or write them as dates"
        )
    return values


def _zone_notes(column: pd.Series) -> list[str]:
    """Return notes on texts whose time zones differ, or that lack one."""
    offsets = column.astype(str).str.extract(OFFSET, expand=False)
    if not (lacking := int(offsets.isna().sum())):
        several = offsets.nunique() > 1
        return [f"times in '{column.name}' have several time zones and are compared in UTC"] if several else []
    if lacking == len(column):
        return []
    return [f"{lacking:,} of {len(column):,} times in '{column.name}' have no time zone and are read as UTC"]


def _in_utc(column: pd.Series) -> np.ndarray:
    naive = column if getattr(column.dtype, "tz", None) is None else column.dt.tz_convert(None)
    return naive.to_numpy("datetime64[us]")
