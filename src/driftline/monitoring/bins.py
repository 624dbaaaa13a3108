"""Counts of a feature, of predictions or of labels in the bins of the reference."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from driftline.data.formats.column_kinds import column_kind, to_floats
from driftline.metrics.shift import total_variation

BINS = 20  # of numbers, with equal shares of the reference
MAX_LEVELS = 50  # of a category; rarer ones are one bin
LEVEL = 0.01  # of the test of a batch, divided by the number of features
MIN_DISTANCE = 0.1  # a smaller distance does not count, even if it is significant


@dataclass(frozen=True)
class Bins:
    """Bins and their counts in the reference; the last bin holds missing values."""

    edges: tuple[float, ...] | None
    """Upper ends of the bins of numbers; None for categories."""
    levels: tuple[str, ...]
    counts: tuple[int, ...]

    def count(self, column: pd.Series) -> np.ndarray:
        """Return how many values of a column are in each bin."""
        if self.edges is None:
            texts = _texts(column)
            at = pd.Index(self.levels).get_indexer(pd.Index(texts))
            at[(at < 0) & texts.notna()] = len(self.levels)
            at[texts.isna()] = len(self.levels) + 1
            return np.bincount(at, minlength=len(self.levels) + 2)
        values = _numbers(column)
        at = np.searchsorted(self.edges, values)  # NaN is above all
        at[np.isnan(values)] = len(self.edges) + 1
        return np.bincount(at, minlength=len(self.edges) + 2)


@dataclass(frozen=True)
class Moved:
    """How far a batch is from the reference in one feature, in the predictions or in the labels."""

    name: str
    distance: float
    """Total variation over the bins: 0 the same, 1 nothing in common."""
    p: float
    moved: bool
    """Whether the distance is 0.1 or more and significant."""


def make_bins(column: pd.Series) -> Bins:
    """Return 20 bins with equal shares of a column of numbers, one per level of any other; texts by their length."""
    if column_kind(column) == "category":
        levels = tuple(_texts(column).value_counts().index[:MAX_LEVELS])
        empty = Bins(None, levels, ())
    else:
        values = _numbers(column)
        known = values[~np.isnan(values)]
        cuts = np.quantile(known, np.arange(1, BINS) / BINS, method="inverted_cdf") if len(known) else []
        empty = Bins(tuple(np.unique(cuts).tolist()), (), ())
    return Bins(empty.edges, empty.levels, tuple(empty.count(column).tolist()))


def compare(name: str, bins: Bins, column: pd.Series, tests: int) -> Moved:
    """Compare a column with the reference by a chi-square test, one of several."""
    found = total_variation(bins.counts, bins.count(column))
    moved = found.effect >= MIN_DISTANCE and found.p <= LEVEL / tests
    return Moved(name, found.effect, found.p, bool(moved))


def _texts(column: pd.Series) -> pd.Series:
    return column.astype(object).map(str, na_action="ignore")


def _numbers(column: pd.Series) -> np.ndarray:
    if column_kind(column) == "text":
        return column.astype(object).map(lambda text: float(len(str(text))), na_action="ignore").to_numpy(float)
    return to_floats(column)
