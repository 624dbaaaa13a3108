"""The rows of a table, read in the way that the reference was: columns, kinds, classes and times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from driftline.auditing.frame import same_type
from driftline.data import table as tables
from driftline.data.formats.column_kinds import prepare, to_floats, to_typed
from driftline.data.formats.time_column import parse_times
from driftline.errors import UserError, unknown_name
from driftline.tasks import Classification, Regression

UNKNOWN_CLASS = -1  # a class that the reference does not have


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

    @property
    def task(self) -> Classification | Regression:
        if self.labels is None:
            return Regression(self.center, self.scale)
        return Classification(tuple(map(str, self.labels)))

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

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, chosen: np.ndarray | slice) -> Rows:
        return Rows(
            self.inputs.iloc[chosen].reset_index(drop=True),
            self.time[chosen],
            self.y[chosen],
            None if self.id is None else self.id[chosen],
            None if self.logged is None else self.logged[chosen],
        )

    @property
    def has_label(self) -> np.ndarray:
        return np.asarray(~np.isnan(self.y))

    def to_frame(self) -> pd.DataFrame:
        """Return all columns as one frame; features are named by position, so that no name occurs twice."""
        features = self.inputs.set_axis([f"feature{k}" for k in range(self.inputs.shape[1])], axis=1)
        arrays = {"time": self.time, "y": self.y, "id": self.id, "logged": self.logged}
        return features.assign(**{name: values for name, values in arrays.items() if values is not None})

    @staticmethod
    def from_frame(frame: pd.DataFrame, features: Sequence[str]) -> Rows:
        """Return the rows of a frame that `to_frame` made."""
        inputs = frame[[f"feature{k}" for k in range(len(features))]].set_axis(list(features), axis=1)
        parts = {name: frame[name].to_numpy() if name in frame else None for name in ("id", "logged")}
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
        )


def _joined(parts: Sequence[np.ndarray | None]) -> np.ndarray | None:
    known = [part for part in parts if part is not None]
    return np.concatenate(known) if known else None


def read_rows(table: pd.DataFrame, name: str, columns: Columns) -> Rows:
    """Return the rows of a table with features; the target may be absent or missing in part."""
    needed = [columns.time, *columns.kinds, *(c for c in (columns.id, columns.prediction) if c is not None)]
    for column in needed:
        if column not in table.columns:
            raise unknown_name(f"column of {name}", column, [*table.columns])
    when, _ = parse_times(table[columns.time], columns.time_kind)
    order = np.argsort(when, kind="stable")
    table = table.iloc[order]
    inputs, _ = prepare(table[list(columns.kinds)], columns.kinds)
    texts = {c: inputs[c].astype(object) for c, kind in columns.kinds.items() if kind in ("category", "text")}
    y = np.full(len(table), np.nan) if columns.target not in table else parse_labels(table[columns.target], columns)
    logged = None
    if columns.prediction is not None:
        logged = parse_labels(table[columns.prediction], columns)
        if missing := int(np.isnan(logged).sum()):
            raise UserError(f"prediction column '{columns.prediction}' of {name} has {missing} missing values")
    ids = None if columns.id is None else parse_ids(table[columns.id], name)
    return Rows(inputs.assign(**texts).reset_index(drop=True), when[order], y, ids, logged)


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
