"""From one number per seed to one number with an interval, for tables and charts alike."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from driftline.metrics.intervals import seed_interval

SLACK = 1e-12  # two seeds that give the same number may differ in its last bit


def over_seeds(scores: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Mean over seeds of each cell named by the columns `by`, with a 95% interval.

    The interval is the t-interval over seeds where two seeds or more know the value (`interval` is "seeds"), else
    the one seed's own, resampled over test examples ("examples"). `n` is what each seed's number rests on; where
    seeds differ, the least of them.
    """
    wide = scores.pivot(index=by, columns="seed", values="value")
    cells = scores.dropna(subset="value").groupby(by).agg(low=("low", "first"), high=("high", "first"))
    cells = cells.join(scores.groupby(by).agg(n=("n", "min"), unit=("unit", "first")), how="right").reindex(wide.index)
    low, high = seed_interval(wide.to_numpy().T)
    cells["value"] = wide.mean(axis=1)
    cells["seeds"] = wide.notna().sum(axis=1)
    several = cells["seeds"] >= 2
    cells["low"] = np.where(several, low, cells["low"])
    cells["high"] = np.where(several, high, cells["high"])
    cells["interval"] = np.where(several, "seeds", "examples")
    return cells


def leaders(values: Mapping[str, Mapping[int, float]], better: str) -> set[str]:
    """The best method of a column and those that cannot be told from it, from their values by seed.

    Two methods are told apart by the 95% t-interval of their differences on common seeds. Nothing leads if there is
    no other method, or if the best was run with fewer than three seeds: two differences tell next to nothing.

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
    return {method for method in means if _tied(known[best], known[method])}


def _tied(one: Mapping[int, float], other: Mapping[int, float]) -> bool:
    low, high = seed_interval([one[seed] - other[seed] for seed in one if seed in other])
    return bool(low <= SLACK and high >= -SLACK)
