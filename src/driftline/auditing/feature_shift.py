"""Distance of each feature from the first period."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from driftline.auditing.histograms import Histogram, histogram, now_periods
from driftline.auditing.table import AuditTable, draw
from driftline.data.formats.column_kinds import column_kind, to_floats
from driftline.metrics.shift import Distance, benjamini_hochberg, ks_distance, total_variation
from driftline.models.tabular import TableEncoder
from driftline.types import Samples

MIN_DISTANCE = 0.1  # a smaller distance does not count as a change, even if it is significant


@dataclass(frozen=True)
class FeatureShift:
    """Distance of one feature from the first period."""

    feature: str
    kind: str
    distance: str
    """Name of the distance, which is between 0 and 1."""
    largest: float
    largest_at: str
    last: float
    p: float
    """p-value at the largest distance, adjusted for all features and periods."""
    psi: float
    by_period: tuple[float, ...]
    """Distance in each period after the first."""
    changed: bool
    histogram: Histogram
    """Of its values in the first period and in the last ones."""


def compared_rows(table: AuditTable, period: int) -> Samples:
    """Return the rows of a period that are compared with those of another."""
    return draw(table.periods[period], table.limits.probe_rows, table.seed.child("examined", table.names[period]))


def feature_shifts(table: AuditTable) -> tuple[FeatureShift, ...]:
    """Return the distance of each feature from the first period, the largest first."""
    first = compared_rows(table, 0).id
    others = [compared_rows(table, tau).id for tau in range(1, len(table.periods))]
    now = np.concatenate(others[-now_periods(len(table.periods)) :])
    columns = [table.frame.inputs[name] for name in table.frame.features]
    distances = [[_distance(column.iloc[first], column.iloc[ids]) for ids in others] for column in columns]
    adjusted = benjamini_hochberg([[distance.p for distance in row] for row in distances])
    shifts = []
    for column, row, p in zip(columns, distances, adjusted, strict=True):
        effects = np.array([distance.effect for distance in row])
        if np.isnan(effects).all():
            continue
        kind, at = column_kind(column.iloc[first]), int(np.nanargmax(effects))
        shifts.append(
            FeatureShift(
                feature=str(column.name),
                kind=kind,
                distance="total variation" if kind == "category" else "Kolmogorov-Smirnov",
                largest=float(effects[at]),
                largest_at=table.names[at + 1],
                last=float(effects[-1]),
                p=float(p[at]),
                psi=float(row[at].psi),
                by_period=tuple(effects.tolist()),
                changed=bool(((effects >= MIN_DISTANCE) & (p < 0.05)).any()),
                histogram=histogram(column.iloc[first], column.iloc[now]),
            )
        )
    return tuple(sorted(shifts, key=lambda shift: -shift.largest))


def _distance(before: pd.Series, after: pd.Series) -> Distance:
    kind = column_kind(before)
    if kind == "number":
        return ks_distance(to_floats(before), to_floats(after))
    if kind == "text":
        return _text_distance(before, after)
    counts = [part.astype(object).fillna("").astype(str).value_counts() for part in (before, after)]
    both = pd.concat(counts, axis=1).fillna(0)
    return total_variation(*both.to_numpy().T)


def _text_distance(before: pd.Series, after: pd.Series) -> Distance:
    """Return the largest distance among the length of a text and the main directions of its words.

    Directions are fitted on both periods together; p is adjusted for their number.
    """
    both = pd.concat([before, after], ignore_index=True)
    aspects = [both.fillna("").astype(str).str.len().to_numpy(float)]
    aspects += list(TableEncoder().fit_transform(both.to_frame("text")).T)
    distances = [ks_distance(aspect[: len(before)], aspect[len(before) :]) for aspect in aspects]
    largest = max(distances, key=lambda distance: distance.effect)
    return largest._replace(p=min(1.0, largest.p * len(distances)))
