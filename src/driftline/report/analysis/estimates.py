"""Estimates: a mean over seeds with its confidence interval and sample size."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from driftline import registry
from driftline.metrics.confidence import t_interval_over_seeds
from driftline.report.analysis.aggregate import SHARE, clip_interval, mean_over_seeds
from driftline.report.analysis.groups import Group

FINAL = "final-accuracy"
SEEDS = "seeds"


@dataclass(frozen=True)
class Estimate:
    """A number with its 95% interval; a published number has neither interval nor seeds."""

    value: float
    low: float = math.nan
    high: float = math.nan
    interval: str = ""
    """What the interval is over: seeds, examples, ..."""
    seeds: int = 0
    n: int = 0
    """Smallest sample size of a seed; 0 if unknown."""
    unit: str = ""
    """What n counts."""
    by_seed: Mapping[int, float] = field(default_factory=dict)
    cells: int = 1
    """Number of estimates that this one is the mean of."""


def is_share(metric: str) -> bool:
    """Return whether a metric is a share, which is shown in percent."""
    return bool(registry.get("metric", metric).unit == "share")


def bounds(metric: str) -> tuple[float, float]:
    """Return the smallest and the largest possible value of a metric; a ratio that is not clipped may be above 1.

    >>> bounds("tas"), bounds("tas-unclipped"), bounds("sh")
    ((0.0, 1.0), (0.0, inf), (0.0, inf))
    """
    known: tuple[float, float] | None = registry.get("metric", metric).bounds
    return known or (SHARE if is_share(metric) else (0.0, math.inf))


def difference_bounds(metric: str) -> tuple[float, float]:
    """Return the smallest and the largest possible difference of two values of a metric.

    >>> difference_bounds("tas"), difference_bounds("sh")
    ((-1.0, 1.0), (-inf, inf))
    """
    low, high = bounds(metric)
    return low - high, high - low


def estimates(group: Group, metric: str = FINAL, stat: str = "mean") -> dict[str, Estimate]:
    """Return the estimates of a score, by method; methods without it are left out."""
    scores = group.summary[(group.summary["metric"] == metric) & (group.summary["stat"] == stat)]
    scores = scores.dropna(subset="value")
    return {} if scores.empty else estimates_by_method(scores, bounds(metric))


def estimates_by_method(scores: pd.DataFrame, within: tuple[float, float]) -> dict[str, Estimate]:
    """Return the estimate of each method from one row per method and seed."""
    by_seed = {
        str(name): dict(zip(rows["seed"], rows["value"], strict=True)) for name, rows in scores.groupby("method")
    }
    summary: dict[Any, Any] = mean_over_seeds(scores, ["method"], within).to_dict("index")
    return {
        str(method): Estimate(
            value=row["value"],
            low=row["low"],
            high=row["high"],
            interval="" if math.isnan(row["low"]) else row["interval"],
            seeds=len(by_seed[str(method)]),
            n=int(row["n"]),
            unit=row["unit"],
            by_seed=by_seed[str(method)],
        )
        for method, row in summary.items()
    }


def estimate_from_seeds(by_seed: Mapping[int, float], within: tuple[float, float]) -> Estimate:
    """Return the mean of one number per seed; the t-interval needs two seeds and is clipped to `within`.

    >>> estimate_from_seeds({0: 0.1, 1: 0.3}, (-1, 1)).low, estimate_from_seeds({0: 0.1}, (-1, 1)).low
    (-1.0, nan)
    """
    values = list(by_seed.values())
    mean = Estimate(float(np.mean(values)), seeds=len(values), by_seed=by_seed)
    if len(values) < 2:
        return mean
    low, high = clip_interval(*t_interval_over_seeds(values), *within)
    return replace(mean, low=low, high=high, interval=SEEDS)


def mean_of(estimates: Sequence[Estimate]) -> Estimate | None:
    """Return the mean of several estimates, with an interval over seeds if all have the same two seeds or more.

    Seeds and n are the smallest of the estimates.
    """
    if not estimates:
        return None
    seeds, n = min(one.seeds for one in estimates), min(one.n for one in estimates)
    value = float(np.mean([one.value for one in estimates]))
    mean = Estimate(value, seeds=seeds, n=n, unit=estimates[0].unit, cells=len(estimates))
    common = {tuple(sorted(one.by_seed)) for one in estimates}
    if seeds < 2 or len(common) > 1:
        return mean
    by_seed = [float(np.mean([one.by_seed[seed] for one in estimates])) for seed in common.pop()]
    low, high = clip_interval(*t_interval_over_seeds(by_seed))
    return replace(mean, low=low, high=high, interval=SEEDS)


def std_of(estimates: Sequence[Estimate]) -> Estimate | None:
    """Return the population standard deviation of several estimates."""
    return Estimate(float(np.std([one.value for one in estimates])), cells=len(estimates)) if estimates else None
