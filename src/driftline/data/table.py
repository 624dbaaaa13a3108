"""A table of your own: rows with a time, a class or number to predict, and columns of numbers or categories.

Nothing about the future reaches the encoding: a category column becomes one 0/1 column per category that
occurs in the earliest tenth of the rows, and one that appears later is all zeros, as for a model in use. A missing text
is a category like others. A missing number is the earliest tenth's median, and a 0/1 column says where, if the earliest
tenth has any.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
from pandas.api import types as kinds

from driftline.data.base import Dataset
from driftline.data.formats.column_kinds import (
    MIN_JUDGED_ROWS,
    column_kind,
    column_notes,
    n_earliest,
    parse_numbers,
    prepare,
    to_floats,
    to_typed,
)
from driftline.data.formats.dialect import Dialect
from driftline.data.formats.label_time import parse_label_times
from driftline.data.formats.table_file import read_file
from driftline.data.formats.time_column import check_plain, parse_times
from driftline.errors import UserError, unknown_name
from driftline.io.locate import locate_user_path
from driftline.registry import register
from driftline.tasks import Classification, Regression, Task
from driftline.types import Samples

MAX_LEVELS = 50  # of a category, and of a target of numbers that names classes
LARGEST = 1e150  # of a target: squares of larger numbers overflow


@register("dataset", "table")
def table(
    folders: Sequence[Path],
    *,
    path: str,  # .csv, .tsv (also .gz) or .parquet file
    time: str,  # column of the times
    target: str,  # column to predict
    features: list[str] | None = None,  # columns to predict from; None: all others
    id: str | None = None,  # column of unique ids; None: rows are numbered from 0
    known: str | None = None,  # column of the times at which labels became known; None: at the end of their period
    cluster: str | None = None,  # column of clusters, for refinement; "upstream" or else the earliest is upstream
    task: Literal["auto", "classes", "number"] = "auto",  # kind of target; auto: a number if it has more than 50
    columns: dict[str, str] | None = None,  # kinds of columns: number, category, text, date or ignore; None: guessed
    sep: str | None = None,  # separator of columns in a CSV file; None: recognized
    encoding: str | None = None,  # of a CSV file; None: UTF-8, or UTF-16 with its mark
    decimal: str | None = None,  # decimal sign in a CSV file; None: recognized
    date_format: str | None = None,  # how times are written, e.g. %d.%m.%Y, or unix, unix-ms; None: recognized
) -> Dataset:
    """The rows of a .csv, .tsv (also .gz) or .parquet file in time order; without `id`, rows are numbered from 0.

    `task="auto"` takes a target with more than 50 distinct numbers for a number. `columns[time]` is date or number.
    """
    file = locate_user_path(folders, path, "table")
    read = from_frame(file.name, read_file(file, Dialect(sep, encoding, decimal)))
    options = {"features": features, "id": id, "known": known, "cluster": cluster, "task": task, "columns": columns}
    return read(folders, time=time, target=target, date_format=date_format, **options)


def from_frame(name: str, frame: pd.DataFrame) -> Callable[..., Dataset]:
    """Return the function of folders and options that makes a dataset of a table."""

    def rows(
        folders: Sequence[Path],
        *,
        time: str,
        target: str,
        features: list[str] | None = None,
        id: str | None = None,
        known: str | None = None,
        cluster: str | None = None,
        task: Literal["auto", "classes", "number"] = "auto",
        columns: dict[str, str] | None = None,
        date_format: str | None = None,
    ) -> Dataset:
        named = [time, target, *(column for column in (id, known, cluster) if column is not None)]
        table = with_index(frame.rename(columns=str), [*named, *(features or [])])
        used = [c for c in table.columns if c not in named] if features is None else list(features)
        _check_columns(table, name, target, named, used)
        chosen = dict(columns or {})
        when, read_as = parse_times(table[time], chosen.pop(time, "auto"), date_format)
        order = np.argsort(when, kind="stable")
        table, when = table.iloc[order], when[order]
        y, asked = parse_target(table[target], task)
        inputs, described = prepare(table[used], chosen, slice(n_earliest(len(table), MIN_JUDGED_ROWS)))
        x, notes = _encode(inputs)
        ids = order if id is None else _ids(table[id])
        labeled, label_notes = (None, []) if known is None else parse_label_times(table[known], when, date_format)
        group = None if cluster is None else _clusters(table[cluster])
        samples = Samples(x=x, y=y, id=ids, time=when, known=labeled, group=group)
        note = f"{len(table):,} rows of {name}; {x.shape[1]} inputs from {inputs.shape[1]} columns"
        return Dataset("table", samples, asked, (note, *read_as, *label_notes, *column_notes(described), *notes))

    return rows


def index_names(frame: pd.DataFrame) -> list[str]:
    """Return the names under which the levels of an index count as columns; one without a name is `index`."""
    if isinstance(frame.index, pd.RangeIndex) and frame.index.name is None:
        return []
    unnamed = ["index"] if frame.index.nlevels == 1 else [f"level_{k}" for k in range(frame.index.nlevels)]
    return [other if name is None else str(name) for name, other in zip(frame.index.names, unnamed, strict=True)]


def with_index(frame: pd.DataFrame, asked: Sequence[str]) -> pd.DataFrame:
    """Return the frame with the named levels of its index as columns."""
    levels = {name: frame.index.get_level_values(k) for k, name in enumerate(index_names(frame))}
    return frame.assign(**{name: level for name, level in levels.items() if name in asked and name not in frame})


def _check_columns(frame: pd.DataFrame, source: str, target: str, named: list[str], used: list[str]) -> None:
    for name in [*named, *used]:
        if name not in frame.columns:
            raise unknown_name(f"column of {source}", str(name), [*map(str, frame.columns), *index_names(frame)])
    if len(set(named)) < len(named):
        raise UserError(
            f"{source}: time, target, id, known and cluster must be different columns, but they are {', '.join(named)}"
        )
    if target in used or len(set(used)) < len(used) or not used:
        raise UserError(f"{source}: features must be one or more different columns without the target '{target}'")
    if len(frame) < 2:
        raise UserError(f"cannot use {source}: expected at least two rows under the header, but found {len(frame)}")


def parse_target(column: pd.Series, task: str) -> tuple[np.ndarray, Task]:
    """Return the targets, and the task: classification or regression."""
    _check_gaps(column, "target", "drop those rows")
    check_plain(column, "target")
    column = numbers_or_unchanged(column)
    numeric = kinds.is_numeric_dtype(column) and not kinds.is_bool_dtype(column)
    if task == "auto":
        task = "number" if numeric and column.nunique() > MAX_LEVELS else "classes"
    if task == "classes":
        y, classes = _classes(column)
        return y, Classification(classes)
    if not numeric:
        raise UserError(f"target column '{column.name}' holds texts, not numbers; choose task classes")
    y = column.to_numpy(np.float64)
    if np.abs(y).max() > LARGEST:
        raise UserError(
            f"target column '{column.name}' has numbers as large as {np.abs(y).max():.3g}, whose squares overflow; use "
            "another unit"
        )
    return y, regression(y)


def regression(y: np.ndarray) -> Regression:
    """Return the task to predict these numbers, in units of the earliest: nothing about the future."""
    early = y[: n_earliest(len(y), 2)]
    return Regression(center=float(early.mean()), scale=float(early.std()) or 1.0)


def numbers_or_unchanged(column: pd.Series) -> pd.Series:
    """Return the numbers of a column of any type; if a value is not a number, the column itself."""
    values = to_typed(column)
    if kinds.is_datetime64_any_dtype(values) or isinstance(values.dtype, pd.CategoricalDtype):
        return column
    values = parse_numbers(values)
    return values if values.notna().all() else column


def _classes(column: pd.Series) -> tuple[np.ndarray, tuple[str, ...]]:
    if kinds.is_numeric_dtype(column) and not kinds.is_bool_dtype(column):
        values = column.to_numpy()
        if (values % 1 == 0).all():
            values = values.astype(np.int64)
    else:
        values = column.astype(str).to_numpy(str)
    names, y = np.unique(values, return_inverse=True)
    if len(names) < 2:
        raise UserError(f"target column '{column.name}' has only one value, {names[0]}; there is nothing to predict")
    return y.astype(np.int64), tuple(str(name) for name in names)


def _encode(frame: pd.DataFrame) -> tuple[np.ndarray, list[str]]:
    """Encode a prepared frame in time order."""
    early = n_earliest(len(frame))
    blocks, notes = [], []
    for name in frame.columns:
        gaps = frame[name].isna().to_numpy()
        if column_kind(frame[name]) == "number":
            blocks.append(_impute(frame[name], gaps, early)[:, np.newaxis])
            if gaps[:early].any():
                blocks.append(gaps.astype(np.float32)[:, np.newaxis])
            if gaps.any():
                notes.append(f"{int(gaps.sum()):,} rows have no '{name}' and get the earliest tenth's median")
            continue
        texts = frame[name].astype(object).where(~gaps, "").astype(str).to_numpy(str)
        vocabulary = np.unique(texts[:early])
        if len(vocabulary) > MAX_LEVELS:
            raise UserError(
                f"{column_kind(frame[name])} column '{name}' has {len(vocabulary)} categories in the earliest tenth of "
                f"the rows, more than {MAX_LEVELS}; leave it out by listing the others as features, or by data.columns"
            )
        blocks.append((texts[:, np.newaxis] == vocabulary).astype(np.float32))
        new = int((~np.isin(texts, vocabulary)).sum())
        notes += [f"{new:,} rows have a '{name}' that the earliest tenth does not; it is all zeros"] if new else []
    return np.concatenate(blocks, axis=1), notes


def _impute(column: pd.Series, gaps: np.ndarray, early: int) -> np.ndarray:
    """Return numbers in which missing ones are the early rows' median, 0 if they have none."""
    _check_gaps(column[~gaps], "feature", "leave the column out by listing the others as features")
    values = to_floats(column)
    known = values[:early][~gaps[:early]]
    return np.where(gaps, np.median(known) if len(known) else 0.0, values).astype(np.float32)


def _ids(column: pd.Series) -> np.ndarray:
    _check_gaps(column, "id", "drop those rows")
    if column.duplicated().any():
        raise UserError(f"id column '{column.name}' has {column[column.duplicated()].iloc[0]!r} more than once")
    return column.to_numpy() if kinds.is_integer_dtype(column) else column.astype(str).to_numpy(str)


def _clusters(column: pd.Series) -> np.ndarray:
    _check_gaps(column, "cluster", "name them")
    return column.astype(str).to_numpy(str)


def _check_gaps(column: pd.Series, role: str, way: str) -> None:
    missing = int(column.isna().sum())
    if not missing and kinds.is_float_dtype(column):
        kind = np.float32 if role == "feature" else np.float64
        with np.errstate(over="ignore"):
            missing = int((~np.isfinite(column.to_numpy(kind))).sum())
    if missing:
        raise UserError(f"{role} column '{column.name}' has {missing} missing or infinite values; {way}")
