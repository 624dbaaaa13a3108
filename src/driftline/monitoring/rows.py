"""The rows of a table, read in the way that the reference was: columns, kinds, classes and times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from driftline.auditing.frame import as_pandas, same_type
from driftline.auditing.logged_probability import parse_probabilities
from driftline.data import table as tables
from driftline.data.formats.column_kinds import prepare, to_floats, to_typed
from driftline.data.formats.dialect import Dialect
from driftline.data.formats.label_time import delayed, parse_label_times
from driftline.data.formats.table_file import AS_RECOGNIZED
from driftline.data.formats.time_column import parse_times
from driftline.errors import UserError, unknown_name
from driftline.tasks import Classification, Regression


@dataclass(frozen=True)
class Columns:
    """The roles and kinds of columns, and the classes of the target."""

    time: str
    target: str
    id: str | None
    prediction: str | None
    """A column of logged predictions; None if the deployed model is trained here."""
    kinds: dict[str, str]
    """By feature: number, category, text or date."""
    time_kind: str
    """date or number."""
    labels: tuple[str | int | float | bool, ...] | None
    """The target's values by class index; None if it is a number."""
    center: float = 0.0
    scale: float = 1.0
    """Units of a target that is a number."""
    probabilities: tuple[tuple[str, str | None], ...] = ()
    """Columns of logged class probabilities, with their classes."""
    label_time: str | None = None
    """The column of the times at which labels became known."""
    delay: str | None = None
    """How long after their rows labels are known, such as 60d."""
    dialect: Dialect = AS_RECOGNIZED
    """How CSV files are written."""
    date_format: str | None = None

    @property
    def task(self) -> Classification | Regression:
        if self.labels is None:
            return Regression(self.center, self.scale)
        return Classification(tuple(map(str, self.labels)))

    @property
    def is_logged(self) -> bool:
        """Whether logged answers are watched instead of a model."""
        return self.prediction is not None or bool(self.probabilities)

    @property
    def label_values(self) -> np.ndarray | None:
        return None if self.labels is None else np.array(self.labels)


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows in order of time."""

    inputs: pd.DataFrame
    """The features; categories and texts are texts."""
    time: np.ndarray
    y: np.ndarray
    """Class indices or numbers; NaN where a label is not known yet."""
    id: np.ndarray | None = None
    logged: np.ndarray | None = None
    """Logged predictions, in the units of `y`."""
    scores: np.ndarray | None = None
    """Logged probabilities by class."""
    known: np.ndarray | None = None
    """When labels are known; None: as soon as they are in a table."""

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, chosen: np.ndarray | slice) -> Rows:
        return Rows(
            self.inputs.iloc[chosen].reset_index(drop=True),
            self.time[chosen],
            self.y[chosen],
            None if self.id is None else self.id[chosen],
            *(None if part is None else part[chosen] for part in (self.logged, self.scores, self.known)),
        )

    def has_label(self, now: object) -> np.ndarray:
        """Return which labels are known at this time."""
        there = ~np.isnan(self.y)
        return np.asarray(there if self.known is None else there & (self.known <= now))

    def to_frame(self) -> pd.DataFrame:
        """Return all columns as one frame; features are named by position, so that no name occurs twice."""
        features = self.inputs.set_axis([f"feature{k}" for k in range(self.inputs.shape[1])], axis=1)
        arrays = {"time": self.time, "y": self.y, "id": self.id, "logged": self.logged, "known": self.known}
        if self.scores is not None:
            arrays |= {f"share{k}": self.scores[:, k] for k in range(self.scores.shape[1])}
        return features.assign(**{name: values for name, values in arrays.items() if values is not None})

    @staticmethod
    def from_frame(frame: pd.DataFrame, features: Sequence[str]) -> Rows:
        """Return the rows of a frame that `to_frame` made."""
        inputs = frame[[f"feature{k}" for k in range(len(features))]].set_axis(list(features), axis=1)
        parts: dict[str, np.ndarray | None] = {
            name: frame[name].to_numpy() if name in frame else None for name in ("id", "logged", "known")
        }
        shares = [name for name in frame if str(name).startswith("share")]
        parts["scores"] = frame[shares].to_numpy() if shares else None
        return Rows(inputs, frame["time"].to_numpy(), frame["y"].to_numpy(float), **parts)

    @staticmethod
    def concat(parts: Sequence[Rows]) -> Rows:
        """Return the rows of all parts."""
        return Rows(
            pd.concat([part.inputs for part in parts], ignore_index=True),
            np.concatenate([part.time for part in parts]),
            np.concatenate([part.y for part in parts]),
            _joined([part.id for part in parts]),
            _joined([part.logged for part in parts]),
            _joined([part.scores for part in parts]),
            _joined([part.known for part in parts]),
        )


def _joined(parts: Sequence[np.ndarray | None]) -> np.ndarray | None:
    known = [part for part in parts if part is not None]
    return np.concatenate(known) if known else None


def read_batch(source: object, columns: Columns) -> tuple[str, pd.DataFrame]:
    """Return name and content of a batch; a CSV file is written as the reference was."""
    is_text = isinstance(source, str | Path) and not str(source).endswith(".parquet")
    return as_pandas(source, columns.dialect if is_text else AS_RECOGNIZED)


def read_rows(table: pd.DataFrame, name: str, columns: Columns) -> Rows:
    """Return the rows of a table with features; the target may be absent or missing in part."""
    named = (columns.id, columns.prediction, *(name for name, _ in columns.probabilities))
    needed = [columns.time, *columns.kinds, *(name for name in named if name is not None)]
    for column in needed:
        if column not in table.columns:
            raise unknown_name(f"column of {name}", column, [*table.columns])
    kind = columns.time_kind if columns.date_format is None else "auto"
    when, _ = parse_times(table[columns.time], kind, columns.date_format)
    order = np.argsort(when, kind="stable")
    table = table.iloc[order]
    inputs, _ = prepare(table[list(columns.kinds)], columns.kinds)
    texts = {c: inputs[c].astype(object) for c, kind in columns.kinds.items() if kind in ("category", "text")}
    y = np.full(len(table), np.nan) if columns.target not in table else parse_labels(table[columns.target], columns)
    logged = scores = None
    if columns.probabilities:
        scores, _ = parse_probabilities(table, columns.probabilities, columns.label_values, None)
        logged = scores.argmax(axis=1).astype(float)
    if columns.prediction is not None:
        logged = parse_labels(table[columns.prediction], columns)
        if missing := int(np.isnan(logged).sum()):
            raise UserError(f"prediction column '{columns.prediction}' of {name} has {missing} missing values")
    ids = None if columns.id is None else parse_ids(table[columns.id], name)
    known = label_times(table, when[order], columns)
    return Rows(inputs.assign(**texts).reset_index(drop=True), when[order], y, ids, logged, scores, known)


def label_times(table: pd.DataFrame, when: np.ndarray, columns: Columns) -> np.ndarray | None:
    """Return when labels are known; a label without a time of its own is not known yet."""
    if columns.delay is not None:
        return delayed(when, columns.delay)
    if columns.label_time is None:
        return None
    if columns.label_time not in table or table[columns.label_time].isna().all():
        return np.full(len(when), np.datetime64("NaT") if when.dtype.kind == "M" else np.nan, when.dtype)
    return parse_label_times(table[columns.label_time], when, columns.date_format)[0]


def parse_ids(column: pd.Series, name: str) -> np.ndarray:
    """Return ids as texts; refuse missing and repeated ones."""
    if column.isna().any():
        raise UserError(f"id column '{column.name}' of {name} has {int(column.isna().sum())} missing values")
    ids = column.astype(str)
    if ids.duplicated().any():
        raise UserError(f"id column '{column.name}' of {name} has {ids[ids.duplicated()].iloc[0]!r} more than once")
    return ids.to_numpy(object)


def parse_labels(column: pd.Series, columns: Columns) -> np.ndarray:
    """Return class indices or numbers, NaN where they are missing, and -1 for classes that the reference lacks."""
    values = np.full(len(column), np.nan)
    known = column.notna().to_numpy()
    if not known.any():
        return values
    if columns.labels is None:
        numbers = tables.numbers_or_unchanged(column[known])
        if not pd.api.types.is_numeric_dtype(numbers):
            raise UserError(f"column '{column.name}' holds texts, and the reference has numbers there")
        values[known] = to_floats(numbers)
        return values
    labels = np.array(columns.labels)
    texts = same_type(to_typed(column[known]), labels).astype(str)
    values[known] = pd.Index(labels.astype(str)).get_indexer(pd.Index(texts))
    return values
