"""Histograms of a feature in the first period and in the last ones: what "then" and "now" look like."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from pandas.api.types import is_datetime64_any_dtype

from driftline.data.formats.column_kinds import column_kind, to_floats

BINS = 24
MAX_CATEGORIES = 8  # the most frequent ones; all others are one bin
NOW_PERIODS = 3
TAIL = 0.005  # share of values at either end that the first and the last bin take in
OTHER = "other values"


@dataclass(frozen=True)
class Histogram:
    """Shares of rows by bin, in the first period (then) and in the last periods (now)."""

    measure: str
    """What is counted: the value itself, days of a date, or the length of a text in characters."""
    edges: tuple[float, ...]
    """Ends of the bins of numbers, one more than bins; rows beyond them count in the outer bins."""
    categories: tuple[str, ...]
    """Names of the bins of categories."""
    then: tuple[float, ...]
    now: tuple[float, ...]
    missing_then: float
    """Share of rows without a value."""
    missing_now: float


def now_periods(periods: int) -> int:
    """Return how many periods at the end count as now: at most three, and at most a third."""
    return max(1, min(NOW_PERIODS, periods // 3))


def histogram(then: pd.Series, now: pd.Series) -> Histogram:
    """Return the shares of a column's values in two sets of rows.

    >>> both = histogram(pd.Series([1, 1, 2, None]), pd.Series([2, 2, 3, 3]))
    >>> both.edges, both.then, both.now, both.missing_then
    ((0.5, 1.5, 2.5, 3.5), (0.5, 0.25, 0.0), (0.0, 0.5, 0.5), 0.25)
    """
    kind = column_kind(then)
    if kind == "number":
        measure = "days since 1970" if is_datetime64_any_dtype(then) else "value"
        return _of_numbers(to_floats(then), to_floats(now), measure)
    parts = [part.astype(object).where(part.notna(), None) for part in (then, now)]
    if kind == "text":
        lengths = [np.array([np.nan if v is None else len(str(v)) for v in part], float) for part in parts]
        return _of_numbers(lengths[0], lengths[1], "length in characters")
    return _of_categories(*parts)


def _of_numbers(then: np.ndarray, now: np.ndarray, measure: str) -> Histogram:
    known = [part[np.isfinite(part)] for part in (then, now)]
    edges = _edges(np.concatenate(known))
    shares = [
        tuple((np.histogram(np.clip(x, edges[0], edges[-1]), edges)[0] / max(len(part), 1)).tolist())
        for x, part in zip(known, (then, now), strict=True)
    ]
    missing = [1 - len(x) / max(len(part), 1) for x, part in zip(known, (then, now), strict=True)]
    return Histogram(measure, tuple(edges.tolist()), (), shares[0], shares[1], missing[0], missing[1])


def _edges(values: np.ndarray) -> np.ndarray:
    """Return the ends of bins: one for each of a few whole numbers, else of equal width."""
    if not len(values):
        return np.array([0.0, 1.0])
    low, high = np.quantile(values, [TAIL, 1 - TAIL])
    half = max(0.5, BINS * float(np.spacing(max(abs(low), abs(high)))))  # of large numbers, 0.5 is lost
    if half == 0.5 and high - low < BINS and bool((values == np.round(values)).all()):
        return np.arange(low.round() - 0.5, high.round() + 1)
    if high <= low:
        low, high = values.min(), values.max()
    if high <= low:
        low, high = low - half, high + half
    return np.linspace(low, high, BINS + 1)


def _of_categories(then: pd.Series, now: pd.Series) -> Histogram:
    counts = [part.dropna().astype(str).value_counts() for part in (then, now)]
    shares = [count / max(len(part), 1) for count, part in zip(counts, (then, now), strict=True)]
    total = shares[0].add(shares[1], fill_value=0).sort_values(ascending=False, kind="stable")
    names = [str(name) for name in total.index[:MAX_CATEGORIES]]
    has_others = len(total) > len(names)
    bins = [
        (*(float(share.get(name, 0.0)) for name in names), *([_rest(share, names)] if has_others else []))
        for share in shares
    ]
    missing = [float(1 - share.sum()) for share in shares]
    names += [OTHER] if has_others else []
    return Histogram("value", (), tuple(names), bins[0], bins[1], missing[0], missing[1])


def _rest(share: pd.Series, names: Sequence[str]) -> float:
    return float(share.drop([name for name in names if name in share.index]).sum())
