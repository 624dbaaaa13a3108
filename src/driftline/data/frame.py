"""A user's own frame or file, as it is: who is the time, who the target, who the features; nothing is copied.

The samples hold row numbers of the frame in the order of time; a model looks the rows up (`models.tabular.OnRows`).
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from driftline.data import table as tables
from driftline.data.columns import JUDGED, Column, earliest, kind_of, notes_of, numbers, prepare, typed
from driftline.data.times import times_of
from driftline.errors import UserError, unknown
from driftline.tasks import Classification, Task
from driftline.types import Samples

CLOCK = 20  # different values; a number that has fewer says little about when
FEWEST = 40  # rows; fewer cannot be cut into periods that say anything


@dataclass(frozen=True, eq=False)
class Frame:
    """A table with roles."""

    name: str
    table: pd.DataFrame
    inputs: pd.DataFrame
    """The feature columns of all rows, prepared: with their kinds in their types."""
    columns: tuple[Column, ...]
    """What is known about each feature column; ignored ones too."""
    samples: Samples
    """`x` and `id` are positions in the table; `y` class indices or numbers."""
    task: Task
    labels: np.ndarray | None
    """The target's own values by class index."""
    logged: np.ndarray | None
    """Predictions that the table itself holds, in the order of the samples."""
    notes: tuple[str, ...]

    @property
    def features(self) -> tuple[str, ...]:
        return tuple(self.inputs.columns)

    @property
    def as_given(self) -> pd.DataFrame:
        """The feature columns of all rows as the table has them."""
        return self.table[list(self.features)]

    @cached_property
    def says_when(self) -> tuple[str, ...]:
        """Features that say when, or which row, and not what a row is like: row numbers, identifiers, other clocks."""
        return tuple(name for name in self.features if _says_when(self.inputs[name].iloc[self.samples.x]))

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the content."""
        digest = hashlib.sha256(repr((self.features, self.task)).encode())
        for name in self.features:
            digest.update(pd.util.hash_pandas_object(self.inputs[name], index=False).to_numpy().tobytes())
        for column in (self.samples.x, self.samples.y, self.samples.time):
            digest.update(np.ascontiguousarray(column).tobytes())
        return digest.hexdigest()[:16]


def read(
    given: Any,
    *,
    time: str,
    target: str,
    features: Sequence[str] | None = None,
    prediction: str | None = None,
    task: str = "auto",
    columns: Mapping[str, str] | None = None,
) -> Frame:
    """A pandas frame, anything with `to_pandas` (polars, Arrow), or the path of a CSV or Parquet file, with roles.

    Rows without a target are left out and counted: their label has not come yet. `columns`: kinds by name, which are
    not guessed then.
    """
    name, table = _as_pandas(given)
    if task not in ("auto", "classes", "number"):
        raise unknown("task", task, ["auto", "classes", "number"])
    named = [time, target, *([] if prediction is None else [prediction])]
    table = tables.with_index(table, [*named, *(features or [])])
    used = [c for c in table.columns if c not in named] if features is None else list(features)
    _refuse(table, name, named, used, needed=prediction is None)
    labelled = np.flatnonzero(table[target].notna().to_numpy())
    if len(labelled) < FEWEST:
        raise UserError(f"{name} has {len(labelled)} rows with a '{target}', and an audit needs at least {FEWEST}")
    chosen = dict(columns or {})
    when, read_as = times_of(table[time].iloc[labelled], chosen.pop(time, "auto"))
    order = np.argsort(when, kind="stable")
    rows = labelled[order]
    answers = typed(table[target].iloc[rows])
    y, asked = tables.target_of(answers, task)
    labels = _labels(answers, y, asked)
    inputs, described = prepare(table[used], _for_features(chosen, named), rows[: earliest(len(rows), JUDGED)])
    logged = None if prediction is None else _logged(table[prediction].iloc[rows], labels, asked)
    missing = len(table) - len(labelled)
    notes = [f"{missing:,} rows have no '{target}' yet and are left out"] if missing else []
    notes += [*read_as, *notes_of(described)]
    samples = Samples(x=rows, y=y, id=rows, time=when[order])
    return Frame(name, table, inputs, described, samples, asked, labels, logged, tuple(notes))


def _as_pandas(given: Any) -> tuple[str, pd.DataFrame]:
    if isinstance(given, str | Path):
        path = Path(os.path.expanduser(given))
        if not os.path.exists(path):
            raise UserError(f"there is no file {path}")
        return path.name, tables.read_file(path)
    if not isinstance(given, pd.DataFrame):
        if not hasattr(given, "to_pandas"):
            raise UserError(
                f"expected a frame of pandas or polars, or the path of a file, not a {type(given).__name__}"
            )
        given = given.to_pandas()
    if isinstance(given.columns, pd.MultiIndex):
        raise UserError(
            f"the frame has {given.columns.nlevels} levels of column names; join them first, for example: "
            'frame.columns = ["_".join(map(str, name)) for name in frame.columns]'
        )
    names = [str(column) for column in given.columns]
    twins = sorted(column for column, count in Counter(names).items() if count > 1)
    if twins:
        raise UserError(f"the frame has two columns called '{twins[0]}'; rename one")
    return "the frame", given.set_axis(names, axis=1)


def _refuse(table: pd.DataFrame, name: str, named: list[str], used: list[str], needed: bool) -> None:
    for column in [*named, *used]:
        if column not in table.columns:
            raise unknown(f"column of {name}", column, [*table.columns, *tables.index_names(table)])
    if len(set(named)) < len(named):
        raise UserError(f"time, target and prediction must be different columns, but they are {', '.join(named)}")
    if named[1] in used or len(set(used)) < len(used) or (needed and not used):
        raise UserError(f"features must be one or more different columns without the target '{named[1]}'")


def _for_features(chosen: Mapping[str, str], named: Sequence[str]) -> Mapping[str, str]:
    """Refuse kinds of columns that are no features."""
    for column in named[1:]:
        if column in chosen:
            raise UserError(f"column '{column}' is no feature, so it has no kind; for the target there is --task")
    return chosen


def _says_when(column: pd.Series) -> bool:
    """Whether numbers keep to the order of time, or texts are all different."""
    if kind_of(column) != "number":
        return bool(column.astype(str).is_unique)
    values = pd.Series(numbers(column))
    ranks = values.rank()
    return bool(values.nunique() > CLOCK and abs(ranks.corr(pd.Series(np.arange(len(ranks), dtype=float)))) > 0.99)


def _labels(column: pd.Series, y: np.ndarray, task: Task) -> np.ndarray | None:
    """The column's own value of each class."""
    if not isinstance(task, Classification):
        return None
    _, first = np.unique(y, return_index=True)
    return column.iloc[first].to_numpy()


def _logged(column: pd.Series, labels: np.ndarray | None, task: Task) -> np.ndarray:
    missing = int(column.replace([np.inf, -np.inf], np.nan).isna().sum())
    if missing:
        raise UserError(f"prediction column '{column.name}' has {missing} missing or infinite values; drop those rows")
    if labels is None:
        column = tables.numbers_in(column)
        if not pd.api.types.is_numeric_dtype(column):
            raise UserError(f"prediction column '{column.name}' holds texts, and the target is a number")
        return column.to_numpy(float)
    at = pd.Index(labels.astype(str)).get_indexer(_alike(column, labels).astype(str))
    if (at < 0).mean() > 0.5:  # a class that has not occurred yet is simply wrong; mostly such is another column
        wrong = column.iloc[int(np.flatnonzero(at < 0)[0])]
        raise UserError(
            f"prediction column '{column.name}' holds '{wrong}', which the target never does. It must hold the "
            "predicted class, not a score"
        )
    return np.asarray(at)


def _alike(column: pd.Series, labels: np.ndarray) -> pd.Series:
    """Predictions 1.0 for labels 1 are the same class."""
    if pd.api.types.is_numeric_dtype(column) and labels.dtype.kind in "iuf":
        return column.astype(labels.dtype) if (column % 1 == 0).all() else column
    return column
