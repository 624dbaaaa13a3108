"""From one number per seed to one number with an interval, for tables and charts alike."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from driftline.metrics.comparisons import holm, paired
from driftline.metrics.intervals import Interval, seed_interval

ALPHA = 0.05
SHARE, DIFFERENCE, ANY = (0.0, 1.0), (-1.0, 1.0), (-np.inf, np.inf)  # what numbers can be


def over_seeds(scores: pd.DataFrame, by: list[str], within: tuple[float, float] = ANY) -> pd.DataFrame:
    """Mean over seeds of each cell named by the columns `by`, with a 95% interval, cut at the ends of `within`.

    The interval is the t-interval over seeds where two seeds or more know the value (`interval` is "seeds"), else
    the one seed's own ("examples"). `n` is what each seed's number rests on; where
    seeds differ, the least of them.
    """
    wide = scores.pivot(index=by, columns="seed", values="value")
    cells = scores.dropna(subset="value").groupby(by).agg(low=("low", "first"), high=("high", "first"))
    cells = cells.join(scores.groupby(by).agg(n=("n", "min"), unit=("unit", "first")), how="right").reindex(wide.index)
    low, high = seed_interval(wide.to_numpy().T)
    cells["value"] = wide.mean(axis=1)
    cells["seeds"] = wide.notna().sum(axis=1)
    several = cells["seeds"] >= 2
    cells["low"] = np.maximum(np.where(several, low, cells["low"]), within[0])
    cells["high"] = np.minimum(np.where(several, high, cells["high"]), within[1])
    cells["interval"] = np.where(several, "seeds", "examples")
    return cells


def to_common_end(summary: pd.DataFrame) -> pd.DataFrame:
    """The curves of methods, rows in the order of time, each up to the last time that all of its seeds reach.

    A later point would be a mean over other seeds than the rest of the curve.

    >>> curve = pd.DataFrame({"method": "ncm", "time": [4, 8, 12, 16], "seeds": [3, 2, 3, 1]})
    >>> to_common_end(curve)["time"].tolist()
    [4, 8, 12]
    """
    methods = summary["method"]
    full = summary["seeds"] == summary["seeds"].groupby(methods).transform("max")
    return summary[full[::-1].groupby(methods).cummax()[::-1]]


def cut(low: float, high: float, bottom: float = 0.0, top: float = 1.0) -> Interval:
    """The ends of an interval, cut at what is possible: a t-interval does not know that; an unknown end stays so.

    >>> cut(-0.25, 0.5), cut(float("nan"), float("nan"))
    (Interval(low=0.0, high=0.5), Interval(low=nan, high=nan))
    """
    return Interval(float(np.maximum(low, bottom)), float(np.minimum(high, top)))


def leaders(values: Mapping[str, Mapping[int, float]], better: str) -> set[str]:
    """The best method of a column and those that cannot be told from it, from their values by seed.

    A method is told from the best if it is worse by a paired t test on common seeds, at 5% after Holm's correction
    for all methods of the column. Nothing leads if there is no other method, or if the best was run with fewer than
    three seeds: two differences tell next to nothing. A method without two seeds in common cannot be judged, and does
    not lead.

    >>> erm, ft, frozen = {0: 0.5, 1: 0.7, 2: 0.6}, {0: 0.6, 1: 0.59, 2: 0.58}, {0: 0.3, 1: 0.51, 2: 0.4}
    >>> sorted(leaders({"erm": erm, "ft": ft, "frozen": frozen}, "higher"))
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
    found = [paired(differences(known[best], known[method])) for method in others]
    sign = 1 if better == "higher" else -1
    corrected = zip(others, found, holm([one.p for one in found]), strict=True)
    # on common seeds the best may be the worse one: being better on these tells nobody apart
    level = {method for method, one, p in corrected if p > ALPHA or (p <= ALPHA and sign * one.value < 0)}
    return {best, *level}


def differences(one: Mapping[int, float], other: Mapping[int, float]) -> list[float]:
    """Of two methods on each seed that both have, in the order of seeds."""
    return [one[seed] - other[seed] for seed in sorted(one) if seed in other]
