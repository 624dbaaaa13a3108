"""A user's frame or file with the roles of its columns: time, target, features, logged predictions.

Rows are not copied: samples hold row numbers in order of time, and a model looks the rows up
(`models.tabular.RowIndexModel`).
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from driftline.auditing.logged_probability import parse_probabilities, split_names
from driftline.data import table as tables
from driftline.data.formats.column_kinds import (
    MIN_JUDGED_ROWS,
    Column,
    column_kind,
    column_notes,
    n_earliest,
    prepare,
    to_floats,
    to_typed,
)
from driftline.data.formats.dialect import Dialect
from driftline.data.formats.label_time import delayed, parse_label_times
from driftline.data.formats.table_file import AS_RECOGNIZED, read_file
from driftline.data.formats.time_column import parse_times
from driftline.errors import UserError, unknown_name
from driftline.tasks import Classification, Task
from driftline.types import Samples

MIN_DISTINCT_TIMES = 20  # numbers with fewer distinct values say little about the time
MIN_ROWS = 40  # fewer rows cannot be cut into useful periods


@dataclass(frozen=True, eq=False)
class Frame:
    """A table with the roles of its columns."""

    name: str
    time: str
    target: str
    prediction: str | None
    table: pd.DataFrame
    inputs: pd.DataFrame
    """The feature columns of all rows, with types that express their kinds."""
    columns: tuple[Column, ...]
    """Kind, missing values and levels of each feature column, also of ignored ones."""
    samples: Samples
    """`x` and `id` are row numbers of the table; `y` holds class indices or numbers."""
    task: Task
    labels: np.ndarray | None
    """The target's own values by class index."""
    logged_predictions: np.ndarray | None
    """In the order of the samples."""
    notes: tuple[str, ...]
    label_time: str | None = None
    """The column of the times at which labels became known."""
    label_delay: str | None = None
    """How long after its row a label is known, such as 60d."""
    logged_probabilities: np.ndarray | None = None
    """By class, in the order of the samples."""
    rows: int = 0
    """Rows with a target in the whole table, of which these may be a part."""
    date_format: str | None = None
    """How times are written, if that was given."""

    @property
    def features(self) -> tuple[str, ...]:
        return tuple(self.inputs.columns)

    @property
    def raw_features(self) -> pd.DataFrame:
        """The feature columns of all rows as the table has them."""
        return self.table[list(self.features)]

    @cached_property
    def time_proxies(self) -> tuple[str, ...]:
        """Features that identify the time or the row: row numbers, identifiers, dates."""
        return tuple(name for name in self.features if _is_time_proxy(self.inputs[name].iloc[self.samples.x]))

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the content."""
        digest = hashlib.sha256(repr((self.features, self.task)).encode())
        for name in self.features:
            digest.update(pd.util.hash_pandas_object(self.inputs[name], index=False).to_numpy().tobytes())
        known = [] if self.samples.known is None else [self.samples.known]
        for column in (self.samples.x, self.samples.y, self.samples.time, *known):
            digest.update(np.ascontiguousarray(column).tobytes())
        return digest.hexdigest()[:16]


def read_frame(
    source: object,
    *,
    time: str,
    target: str,
    features: Sequence[str] | None = None,
    prediction: str | None = None,
    task: str = "auto",
    columns: Mapping[str, str] | None = None,
    label_time: str | None = None,
    label_delay: str | None = None,
    probability: Sequence[str] = (),
    dialect: Dialect = AS_RECOGNIZED,
    date_format: str | None = None,
) -> Frame:
    """Read a pandas frame, anything with `to_pandas` (polars, Arrow), or the path of a CSV or Parquet file.

    Rows without a target are left out and counted: their label is not known yet. `columns`: kinds by name; the other
    kinds are guessed. `label_time`: the column of the times at which labels became known; or `label_delay`: how long
    after their rows. `probability`: columns of logged class probabilities, as COL or COL=CLASS. `date_format`: how
    times are written.
    """
    name, table = as_pandas(source, dialect)
    shares = split_names(probability, [str(column) for column in getattr(table, "columns", ())])
    logged_columns = [*([] if prediction is None else [prediction]), *(column for column, _ in shares)]
    named = [time, target, *([] if label_time is None else [label_time]), *logged_columns]
    table = tables.with_index(table, [*named, *(features or [])])
    used = [c for c in table.columns if c not in named] if features is None else list(features)
    _check_columns(table, name, named, used, needed=not logged_columns)
    if label_time in used:
        raise UserError(f"label time column '{label_time}' cannot be a feature: it is not known at prediction time")
    labeled = _labeled_rows(table[target], name)
    kinds = dict(columns or {})
    when, time_notes = parse_times(table[time].iloc[labeled], kinds.pop(time, "auto"), date_format)
    order = np.argsort(when, kind="stable")
    rows = labeled[order]
    _check_kinds(kinds, named)
    y, kind, labels = _parse_target(table[target].iloc[rows], task)
    inputs, described = prepare(table[used], kinds, rows[: n_earliest(len(rows), MIN_JUDGED_ROWS)])
    logged, shared, share_notes = _logged_answers(table.iloc[rows], prediction, shares, labels)
    known, label_notes = _label_times(table.iloc[rows], when[order], time, label_time, label_delay, date_format)
    notes = [*_unlabeled_note(table[target]), *time_notes, *label_notes, *share_notes, *column_notes(described)]
    samples = Samples(x=rows, y=y, id=rows, time=when[order], known=known)
    content = (table, inputs, described, samples, kind, labels, logged, tuple(notes))
    read = Frame(name, time, target, prediction, *content, label_time, label_delay)
    return replace(read, logged_probabilities=shared, rows=len(rows), date_format=date_format)


def _labeled_rows(target: pd.Series, name: str) -> np.ndarray:
    """Return the rows with a target; raise an error if they are too few for an audit."""
    rows = np.flatnonzero(target.notna().to_numpy())
    if len(rows) < MIN_ROWS:
        raise UserError(f"{name} has {len(rows)} rows with a '{target.name}', and an audit needs at least {MIN_ROWS}")
    return rows


def _parse_target(column: pd.Series, task: str) -> tuple[np.ndarray, Task, np.ndarray | None]:
    """Return class indices or numbers, their task, and the own values of classes."""
    if task not in ("auto", "classes", "number"):
        raise unknown_name("task", task, ["auto", "classes", "number"])
    truth = to_typed(column)
    y, kind = tables.parse_target(truth, task)
    return y, kind, _labels(truth, y, kind)


def _unlabeled_note(target: pd.Series) -> list[str]:
    missing = int(target.isna().sum())
    return [f"{missing:,} rows have no '{target.name}' yet and are left out"] if missing else []


def _logged_answers(
    rows: pd.DataFrame, prediction: str | None, shares: Sequence[tuple[str, str | None]], labels: np.ndarray | None
) -> tuple[np.ndarray | None, np.ndarray | None, list[str]]:
    """Return logged predictions as class indices or numbers, logged probabilities by class, and notes."""
    logged = None if prediction is None else _class_indices(rows[prediction], labels)
    if not shares:
        return logged, None, []
    probabilities, notes = parse_probabilities(rows, shares, labels, logged)
    return (probabilities.argmax(axis=1) if logged is None else logged), probabilities, notes


def _label_times(
    rows: pd.DataFrame, when: np.ndarray, time: str, label_time: str | None, delay: str | None, date_format: str | None
) -> tuple[np.ndarray | None, list[str]]:
    """Return when labels became known, and notes; refuse labels that were known on a day before their rows."""
    if label_time is None:
        return (None if delay is None else delayed(when, delay)), []
    column = rows[label_time]
    known, notes = parse_label_times(column, when, date_format)
    early = np.flatnonzero(known < (when.astype("datetime64[D]") if when.dtype.kind == "M" else when))
    if len(early):
        raise UserError(
            f"{len(early):,} labels have a '{column.name}' before the '{time}' of their rows, such as "
            f"{known[early[0]]} before {when[early[0]]}: a label cannot be known before its row"
        )
    return known, notes


def as_pandas(source: Any, dialect: Dialect = AS_RECOGNIZED) -> tuple[str, pd.DataFrame]:
    """Return the name and the content of a frame, or of a file by its path."""
    if isinstance(source, str | Path):
        path = Path(os.path.expanduser(source))
        if not os.path.exists(path):
            raise UserError(f"there is no file {path}")
        return path.name, read_file(path, dialect)
    if dialect != AS_RECOGNIZED:
        raise UserError("sep, encoding and decimal say how a CSV file is written, but this is a frame: leave them out")
    if not isinstance(source, pd.DataFrame):
        if not hasattr(source, "to_pandas"):
            raise UserError(
                f"expected a frame of pandas or polars, or the path of a file, not a {type(source).__name__}"
            )
        source = source.to_pandas()
    if isinstance(source.columns, pd.MultiIndex):
        raise UserError(
            f"the frame has {source.columns.nlevels} levels of column names; join them first, for example: "
            'frame.columns = ["_".join(map(str, name)) for name in frame.columns]'
        )
    names = [str(column) for column in source.columns]
    twins = sorted(column for column, count in Counter(names).items() if count > 1)
    if twins:
        raise UserError(f"the frame has two columns called '{twins[0]}'; rename one")
    return "the frame", source.set_axis(names, axis=1)


def _check_columns(table: pd.DataFrame, name: str, named: list[str], used: list[str], needed: bool) -> None:
    for column in [*named, *used]:
        if column not in table.columns:
            raise unknown_name(f"column of {name}", column, [*table.columns, *tables.index_names(table)])
    if len(set(named)) < len(named):
        raise UserError(
            "time, target, prediction, probability and label time must be different columns, but they are "
            f"{', '.join(named)}"
        )
    if named[1] in used or len(set(used)) < len(used) or (needed and not used):
        raise UserError(f"features must be one or more different columns without the target '{named[1]}'")


def _check_kinds(kinds: Mapping[str, str], named: Sequence[str]) -> None:
    for column in named[1:]:
        if column in kinds:
            raise UserError(f"column '{column}' is not a feature, so it has no kind; for the target use --task")


def _is_time_proxy(column: pd.Series) -> bool:
    """Return whether numbers follow the order of time, or names are all different; texts of many words may be."""
    if column_kind(column) != "number":
        return column_kind(column) == "category" and bool(column.astype(str).is_unique)
    values = pd.Series(to_floats(column))
    if values.nunique() <= MIN_DISTINCT_TIMES:
        return False
    return bool(abs(values.rank().corr(pd.Series(np.arange(len(values), dtype=float)))) > 0.99)


def _labels(column: pd.Series, y: np.ndarray, task: Task) -> np.ndarray | None:
    """Return the column's value of each class."""
    if not isinstance(task, Classification):
        return None
    _, first = np.unique(y, return_index=True)
    return column.iloc[first].to_numpy()


def _class_indices(column: pd.Series, labels: np.ndarray | None) -> np.ndarray:
    """Return logged predictions as indices of `labels`, -1 for other classes; as numbers if there are no labels."""
    missing = int(column.replace([np.inf, -np.inf], np.nan).isna().sum())
    if missing:
        raise UserError(f"prediction column '{column.name}' has {missing} missing or infinite values; drop those rows")
    if labels is None:
        column = tables.numbers_or_unchanged(column)
        if not pd.api.types.is_numeric_dtype(column):
            raise UserError(f"prediction column '{column.name}' holds texts, and the target is a number")
        return column.to_numpy(float)
    at = pd.Index(labels.astype(str)).get_indexer(same_type(column, labels).astype(str))
    if (at < 0).mean() > 0.5:  # a few unknown classes are wrong predictions, many mean the wrong column
        wrong = column.iloc[int(np.flatnonzero(at < 0)[0])]
        raise UserError(
            f"prediction column '{column.name}' holds '{wrong}', not a class of the target. It must hold the "
            "predicted class, not a score"
        )
    return np.asarray(at)


def same_type(column: pd.Series, labels: np.ndarray) -> pd.Series:
    """Return whole numbers in the type of the labels, so that 1.0 and 1 are the same class."""
    if pd.api.types.is_numeric_dtype(column) and labels.dtype.kind in "iuf":
        return column.astype(labels.dtype) if (column % 1 == 0).all() else column
    return column
