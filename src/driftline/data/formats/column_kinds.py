"""The kinds of a table's columns: what a column holds, whatever its type in the file.

A number is a number as float, decimal, duration, time of day or text. A date is a date as timestamp, date, period or
ISO text. Texts are judged by the earliest rows alone, so that nothing about the future decides how the past is read;
words for a missing value, such as NA, do not count there.

A prepared frame carries the kinds in its types: numbers are numeric, dates are datetime64, categories are categorical,
and all other columns are texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from pandas.api import types as kinds

from driftline.data.formats.time_column import calendar_dates, calendar_form, parse_moments
from driftline.errors import UserError, unknown_name

KINDS = ("number", "category", "text", "date", "ignore")
MAX_COLUMNS = 10_000  # each takes a millisecond or more
MIN_PARSED_FRACTION = 0.95  # the share of values that must be numbers, or dates, for a column of texts to be read so
MIN_JUDGED_ROWS = 100  # the least number of earliest rows by which texts are judged
MIN_TEXT_WORDS = 3  # a text has at least this many words on average, a category fewer
LEVELS_PER_ROW = 0.5  # above this, texts hardly repeat: a category is reported
FEW_LEVELS = 20  # levels that are never many
DAY = 86_400e6  # microseconds
CODE_PATTERN = r"\s*0\d+\s*"  # digits with a leading zero, such as a postcode; a time of day is not one
NUMBER_START = re.compile(r"\s*[+-]?\.?\d")  # the beginning of each number, time of day and ISO date
GROUPED_NUMBER = r"[+-]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d*)?"
TIME_OF_DAY = r"\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?"
MISSING = ("", "-", "NA", "N/A", "#N/A", "#NA", "<NA>", "n/a", "NaN", "nan", "NULL", "null", "None")


@dataclass(frozen=True)
class Column:
    """What is known about a column of a table."""

    name: str
    kind: str
    missing: int
    levels: int
    note: str = ""


def prepare(
    frame: pd.DataFrame, kinds: Mapping[str, str] | None = None, early: np.ndarray | slice = slice(None)
) -> tuple[pd.DataFrame, tuple[Column, ...]]:
    """Return the columns with their kinds in their types, and a description of each.

    `kinds`: kinds by name; the others are guessed. Columns to ignore are left out. `early`: the positions of the rows
    by which texts are judged.

    >>> frame, columns = prepare(pd.DataFrame({"price": ["1,234.50", "7"], "shop": ["a", "b"]}))
    >>> frame["price"].tolist(), [column.kind for column in columns]
    ([1234.5, 7.0], ['number', 'category'])
    """
    kinds = dict(kinds or {})
    if frame.shape[1] > MAX_COLUMNS:
        raise UserError(f"{frame.shape[1]:,} feature columns are more than {MAX_COLUMNS:,}; choose fewer as features")
    for name, kind in kinds.items():
        if name not in frame.columns:
            raise unknown_name("feature column", name, map(str, frame.columns))
        if kind not in KINDS:
            raise unknown_name(f"kind of column '{name}':", kind, KINDS)
    made, described = {}, []
    for name in frame.columns:
        kind, column = "ignore", frame[name]
        if kinds.get(name) != "ignore":
            kind, made[name] = convert_column(column, kinds.get(name), early)
        described.append(_describe(column, kind, made.get(name, column)))
    return pd.DataFrame(made, index=frame.index, copy=False), tuple(described)


def column_notes(described: Iterable[Column]) -> list[str]:
    """Return what a reader must know about columns."""
    return [f"column '{column.name}': {column.note}" for column in described if column.note]


def convert_column(
    column: pd.Series, kind: str | None = None, early: np.ndarray | slice = slice(None)
) -> tuple[str, pd.Series]:
    """Return the kind of a column, guessed if it is not given, and its values in the type of that kind."""
    if kind in ("category", "text"):
        texts = column.astype(object).map(str, na_action="ignore")
        return kind, texts.astype("category") if kind == "category" else texts
    values = to_typed(column)
    if kind is None:
        values = _guess_kind(values, early) if column_kind(values) == "text" else values
        return ("date" if kinds.is_datetime64_any_dtype(values) else column_kind(values)), values
    read = parse_numbers(values) if kind == "number" else _parse_dates(values)
    known = int(column.notna().sum())
    if read.notna().sum() * 2 < known:
        first = column[column.notna() & read.isna()].iloc[0]
        raise UserError(f"column '{column.name}' cannot be read as {kind}: it holds {first!r}; give it another kind")
    return kind, read


def n_earliest(rows: int, least: int = 1) -> int:
    """Return the number of rows in the earliest tenth, at least `least`."""
    return max(least, -(-rows // 10))


def column_kind(column: pd.Series) -> str:
    """Return number, category or text, from the type of a prepared column; dates are numbers of days."""
    if kinds.is_numeric_dtype(column) or kinds.is_datetime64_any_dtype(column):
        return "number"
    return "category" if isinstance(column.dtype, pd.CategoricalDtype) else "text"


def to_floats(column: pd.Series) -> np.ndarray:
    """Return a column of numbers or dates as floats, NaN where it is missing or infinite; dates are days."""
    if kinds.is_datetime64_any_dtype(column):
        values = column.to_numpy("datetime64[us]")
        return np.where(np.isnat(values), np.nan, values.astype(np.int64) / DAY)
    floats = column.to_numpy(np.float64, na_value=np.nan)
    return np.where(np.isfinite(floats), floats, np.nan)


def to_typed(column: pd.Series) -> pd.Series:
    """Return numbers and dates unchanged, and all other values as texts."""
    if isinstance(column.dtype, pd.PeriodDtype):
        column = column.dt.to_timestamp()
    if kinds.is_datetime64_any_dtype(column):
        return column if getattr(column.dtype, "tz", None) is None else column.dt.tz_convert(None)
    if kinds.is_timedelta64_dtype(column):
        values = column.to_numpy("timedelta64[us]")
        return _floats(column, np.where(np.isnat(values), np.nan, values.astype(np.int64) / DAY))
    if column_kind(column) != "text":
        return column
    objects = column.astype(object)
    if isinstance(column.dtype, pd.StringDtype):
        return objects
    match pd.api.types.infer_dtype(objects, skipna=True):
        case "decimal" | "integer" | "floating" | "mixed-integer-float":
            return _floats(column, objects.where(column.notna(), np.nan).astype(float))
        case "date":
            return pd.Series(objects.where(column.notna(), None).to_numpy().astype("datetime64[us]"), column.index)
        case "datetime" | "datetime64":
            return pd.to_datetime(objects, utc=True).dt.tz_convert(None)
        case "timedelta" | "timedelta64" | "period" as name:
            return to_typed(objects.astype("timedelta64[us]") if name != "period" else objects.infer_objects())
        case "time":
            return _parse_times_of_day(objects)
        case "boolean":
            return objects.astype("boolean")
        case "mixed" if column.map(_is_plain, na_action="ignore").all():
            pass
        case "mixed" | "bytes" | "complex" | "interval" as name:
            raise UserError(f"column '{column.name}' holds {name} values, which no model can use; leave it out")
    return objects.map(str, na_action="ignore")


def _is_plain(value: object) -> bool:
    return bool(kinds.is_scalar(value)) and not isinstance(value, bytes | complex)


def _guess_kind(texts: pd.Series, early: np.ndarray | slice) -> pd.Series:
    """Return texts as numbers, dates, categories or texts, judged by the earliest of them."""
    known = pd.Series([text for text in texts.iloc[early].dropna() if text.strip() not in MISSING], dtype=object)
    enough = int((1 - MIN_PARSED_FRACTION) * len(known)) + 1  # if none of these can be parsed, too few of all can
    if any(map(NUMBER_START.match, known[:enough])):
        if not has_codes(known) and parse_numbers(known).notna().mean() >= MIN_PARSED_FRACTION:
            return parse_numbers(texts)
        if _parse_iso_dates(known).notna().mean() >= MIN_PARSED_FRACTION:
            return _parse_iso_dates(texts)
    many = known.nunique() > LEVELS_PER_ROW * len(known)
    return texts if many and known.str.count(r"\S+").mean() >= MIN_TEXT_WORDS else texts.astype("category")


def has_codes(texts: pd.Series) -> bool:
    """Return whether some texts are digits with a leading zero, such as postcodes."""
    return bool(texts.str.fullmatch(CODE_PATTERN, na=False).any())


def parse_numbers(values: pd.Series) -> pd.Series:
    """Return typed values as numbers, missing where a text is not a number or a time of day; dates are days."""
    if column_kind(values) == "number":
        return _floats(values, to_floats(values)) if kinds.is_datetime64_any_dtype(values) else values
    texts = values.astype(object).map(lambda value: str(value).strip(), na_action="ignore")
    plain = pd.to_numeric(texts, errors="coerce").to_numpy(float, copy=True)
    if (left := texts.notna().to_numpy() & np.isnan(plain)).any():
        rest = texts[left]
        grouped = rest.where(rest.str.fullmatch(GROUPED_NUMBER)).str.replace(",", "")
        plain[left] = pd.to_numeric(grouped, errors="coerce").fillna(_parse_times_of_day(rest))
    return _floats(values, np.where(np.isfinite(plain), plain, np.nan))


def _parse_times_of_day(values: pd.Series) -> pd.Series:
    """Return times of day as fractions of a day; other values are missing."""
    texts = values.map(str, na_action="ignore")
    valid = texts.str.fullmatch(TIME_OF_DAY, na=False).to_numpy(bool)
    shares = np.full(len(values), np.nan)
    if valid.any():
        whole = texts[valid].where(texts[valid].str.count(":") != 1, texts[valid] + ":00")
        shares[valid] = pd.to_timedelta(whole, errors="coerce").dt.total_seconds() / 86_400
    return _floats(values, shares)


def _parse_dates(values: pd.Series) -> pd.Series:
    if kinds.is_datetime64_any_dtype(values):
        return values
    known = values.dropna()
    read = known if kinds.is_numeric_dtype(known) else parse_moments(known)
    if kinds.is_numeric_dtype(read):
        form, valid = calendar_form(read.to_numpy())
        dates = np.zeros(0, "datetime64[us]") if form is None else calendar_dates(read.to_numpy()[valid], form)
        read = pd.Series(dates, index=known.index[valid])
    else:
        read = read.dt.tz_convert(None)
    return read.reindex(values.index)


def _parse_iso_dates(texts: pd.Series) -> pd.Series:
    return pd.to_datetime(texts, errors="coerce", utc=True, format="ISO8601").dt.tz_convert(None)


def _floats(column: pd.Series, values: np.ndarray | pd.Series) -> pd.Series:
    return pd.Series(np.asarray(values, float), index=column.index, name=column.name)


def _describe(column: pd.Series, kind: str, values: pd.Series) -> Column:
    missing, levels = int(values.isna().sum()), int(values.nunique())
    unread, notes = missing - int(column.isna().sum()), []
    if unread and kind in ("number", "date"):
        notes.append(f"{unread:,} values cannot be read as {kind} and count as missing")
    known = len(values) - missing
    if kind == "category" and levels > FEW_LEVELS and levels > LEVELS_PER_ROW * known:
        notes.append(
            f"{levels:,} levels in {known:,} rows: a model learns little from a category that hardly repeats; is it a "
            "number, a date or a text, or to be ignored?"
        )
    return Column(str(column.name), kind, missing, levels, "; ".join(notes))
