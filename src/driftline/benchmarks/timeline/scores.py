"""The scores of a timeline: each number with its interval, each horizon with its false-alarm rate.

A(t,tau) is a share of one count and has Wilson's interval. Means, minima and ratios have the middle 95 % of resamples,
horizons the bounds of `driftline.metrics.horizons`. docs/statistics.md has the measured coverage of each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial as fix

import numpy as np

from driftline import registry
from driftline.metrics.confidence import (
    Interval,
    PeriodAnswers,
    accuracy_matrix,
    are_proportions,
    bootstrap_matrices,
    percentile_interval,
    standard_errors,
    wilson,
)
from driftline.metrics.horizons import false_alarm_rate, horizon_bounds
from driftline.metrics.per_period import Horizon, PerStep
from driftline.types import JsonObject

HORIZONS = ("sh", "sh-paper", "sh-skip", "dh", "dh-paper", "dh-drop")
UNCLIPPED = {"tas": "tas-unclipped", "tas-transfer": "tas-raw-transfer"}
Rows = Iterator[JsonObject]


def rows(
    columns: Sequence[PeriodAnswers],
    names: list[str],
    metrics: Mapping[str, JsonObject],
    resamples: int,
    random: np.random.Generator,
) -> Rows:
    """Yield A(t,tau) and TTR per cell, then each metric with these settings per t and over t."""
    matrix, counts = accuracy_matrix(columns)
    # R^2 may be negative; a model worse than the mean has no skill.
    matrix, drawn = np.maximum(matrix, 0), np.maximum(bootstrap_matrices(columns, resamples, random), 0)
    shares = wilson(np.nan_to_num(matrix * counts), counts) if are_proportions(columns) else percentile_interval(drawn)
    yield from cells("accuracy", names, matrix, shares, counts)
    ratio = registry.get("metric", "ttr").compute
    yield from cells("ttr", names, ratio(matrix), percentile_interval(ratio(drawn)), counts)
    errors, later = standard_errors(columns), np.triu(counts, 1).sum(axis=1)
    for metric, settings in metrics.items():
        compute = fix(registry.get("metric", metric).compute, **settings)
        if metric in HORIZONS:
            yield from _horizon(metric, names, compute, matrix, errors, later)
            continue
        result, ends = compute(matrix), _ends(metric, settings, compute(drawn), drawn)
        if metric == "id":
            ends["counted_values"] = Interval(*(np.diag(end) for end in shares))
        yield from per_time(metric, names, result, ends, np.diag(counts) if metric == "id" else later)


def _ends(metric: str, settings: JsonObject, resampled: PerStep, drawn: np.ndarray) -> dict[str, Interval]:
    """Return percentile intervals of each t, the mean and the minimum.

    Noise can only lower a ratio that is clipped at 1, so the upper ends are those of the ratio before clipping.
    """
    ends = {stat: percentile_interval(getattr(resampled, stat)) for stat in ("counted_values", "mean", "minimum")}
    if metric in UNCLIPPED:
        above = registry.get("metric", UNCLIPPED[metric]).compute(drawn, **settings)
        for stat, end in ends.items():
            ends[stat] = Interval(end.low, np.minimum(percentile_interval(getattr(above, stat)).high, 1))
    return ends


def _horizon(
    metric: str,
    names: list[str],
    compute: Callable[..., Horizon],
    matrix: np.ndarray,
    errors: np.ndarray,
    counts: np.ndarray,
) -> Rows:
    result, bounds = compute(matrix, error=errors), horizon_bounds(compute, matrix, errors)
    ends = {"counted_values": bounds.per_model, "mean": bounds.mean, "minimum": bounds.minimum}
    yield from per_time(metric, names, result, ends, counts)
    if models := int(result.counted.sum()):
        rate = false_alarm_rate(fix(compute, error=errors), matrix, errors)
        yield {"metric": metric, "stat": "false-alarm", "value": rate, "n": models, "unit": "times"}


def cells(metric: str, names: list[str], values: np.ndarray, ends: Interval, counts: np.ndarray) -> Rows:
    """Yield a row per cell of a matrix."""
    for t, tau in np.argwhere(np.isfinite(values)):
        cell = {"value": values[t, tau], "low": ends.low[t, tau], "high": ends.high[t, tau], "n": counts[t, tau]}
        yield {"metric": metric, "stat": "each", "time": names[t], "tau": names[tau], **cell, "unit": "examples"}


def per_time(metric: str, names: list[str], result: PerStep, ends: dict[str, Interval], counts: np.ndarray) -> Rows:
    """Yield a row per period, then the mean and the minimum over periods."""
    low, high = ends["counted_values"]
    censored = result.censored if isinstance(result, Horizon) else np.zeros(len(names), bool)
    for t in np.flatnonzero(np.isfinite(result.counted_values)):
        row = {
            "value": result.counted_values[t],
            "low": low[t],
            "high": high[t],
            "n": counts[t],
            "censored": censored[t],
        }
        yield {"metric": metric, "stat": "each", "time": names[t], **row, "unit": "examples"}
    n = np.isfinite(result.counted_values).sum()
    for stat in ("mean", "minimum"):
        row = {"value": getattr(result, stat), **ends[stat]._asdict(), "n": n, "censored": censored.any()}
        yield {"metric": metric, "stat": stat, **row, "unit": "times"}
