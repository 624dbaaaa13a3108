"""Aggregation over seeds: one number per seed becomes a mean with a confidence interval."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from driftline.metrics.confidence import Interval, t_interval_over_seeds
from driftline.metrics.significance import holm, paired_t_test

ALPHA = 0.05
SHARE, DIFFERENCE, ANY = (0.0, 1.0), (-1.0, 1.0), (-np.inf, np.inf)  # possible values


def mean_over_seeds(scores: pd.DataFrame, by: list[str], within: tuple[float, float] = ANY) -> pd.DataFrame:
    """Return the mean over seeds of each cell named by the columns `by`, with a 95% interval clipped to `within`.

    The interval is the t-interval over seeds where two seeds or more have a value (`interval` is "seeds"), else the
    interval of the one seed ("examples"). `n` is the smallest sample size of a seed.
    """
    wide = scores.pivot(index=by, columns="seed", values="value")
    cells = scores.dropna(subset="value").groupby(by).agg(low=("low", "first"), high=("high", "first"))
    cells = cells.join(scores.groupby(by).agg(n=("n", "min"), unit=("unit", "first")), how="right").reindex(wide.index)
    low, high = t_interval_over_seeds(wide.to_numpy().T)
    cells["value"] = wide.mean(axis=1)
    cells["seeds"] = wide.notna().sum(axis=1)
    several = cells["seeds"] >= 2
    cells["low"] = np.maximum(np.where(several, low, cells["low"]), within[0])
    cells["high"] = np.minimum(np.where(several, high, cells["high"]), within[1])
    cells["interval"] = np.where(several, "seeds", "examples")
    return cells


def to_common_end(summary: pd.DataFrame) -> pd.DataFrame:
    """Return the curves of methods, rows in the order of time, each up to the last time that all its seeds reach.

    A later point would be a mean over fewer seeds than the rest of the curve.

    >>> curve = pd.DataFrame({"method": "ncm", "time": [4, 8, 12, 16], "seeds": [3, 2, 3, 1]})
    >>> to_common_end(curve)["time"].tolist()
    [4, 8, 12]
    """
    methods = summary["method"]
    full = summary["seeds"] == summary["seeds"].groupby(methods).transform("max")
    return summary[full[::-1].groupby(methods).cummax()[::-1]]


def clip_interval(low: float, high: float, bottom: float = 0.0, top: float = 1.0) -> Interval:
    """Return an interval clipped to the possible values; NaN stays NaN.

    >>> clip_interval(-0.25, 0.5), clip_interval(float("nan"), float("nan"))
    (Interval(low=0.0, high=0.5), Interval(low=nan, high=nan))
    """
    return Interval(float(np.maximum(low, bottom)), float(np.minimum(high, top)))


def best_or_tied(values: Mapping[str, Mapping[int, float]], better: str) -> set[str]:
    """Return the best method and those not significantly worse, from their values by seed.

    A method is significantly worse by a paired t-test over common seeds at the 5% level, Holm-corrected for all
    methods. The set is empty if there is one method, or if the best has fewer than three seeds. A method with fewer
    than two seeds in common with the best cannot be tested and is not in the set.

    >>> erm, ft, frozen = {0: 0.5, 1: 0.7, 2: 0.6}, {0: 0.6, 1: 0.59, 2: 0.58}, {0: 0.3, 1: 0.51, 2: 0.4}
    >>> sorted(best_or_tied({"erm": erm, "ft": ft, "frozen": frozen}, "higher"))
    ['erm', 'ft']
    """
    known = {method: {s: v for s, v in by_seed.items() if np.isfinite(v)} for method, by_seed in values.items()}
    means = {method: float(np.mean(list(by_seed.values()))) for method, by_seed in known.items() if by_seed}
    if len(means) < 2:
        return set()
    best = (max if better == "higher" else min)(means, key=lambda method: means[method])
    if len(known[best]) < 3:
        return set()
    others = [method for method in means if method != best]
    tests = [paired_t_test(paired_differences(known[best], known[method])) for method in others]
    sign = 1 if better == "higher" else -1
    corrected = zip(others, tests, holm([test.p for test in tests]), strict=True)
    # on common seeds the best may have the worse mean: a significant difference in its disfavor is no evidence for it
    tied = {method for method, test, p in corrected if p > ALPHA or (p <= ALPHA and sign * test.value < 0)}
    return {best, *tied}


def paired_differences(a: Mapping[int, float], b: Mapping[int, float]) -> list[float]:
    """Return the differences on common seeds, in the order of seeds."""
    return [a[seed] - b[seed] for seed in sorted(a) if seed in b]
