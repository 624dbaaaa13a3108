"""Each two methods of a group: how far they are apart on the seeds they share, and whether that can be chance.

With one seed in common there is one stream, so the two are compared along it: by their differences at each time, with
blocks of neighbouring times drawn anew. That says how sure it is of this stream, and nothing about others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd

from driftline.metrics.blocks import resample_blocks
from driftline.metrics.comparisons import Difference, holm, paired, sign_flip
from driftline.metrics.intervals import percentile_interval
from driftline.report.analysis.aggregate import cut, differences
from driftline.report.analysis.groups import Group
from driftline.report.analysis.result_table import Column, by_seed
from driftline.seeds import Seed

DRAWS = 10_000
LEAST_SEEDS = 3  # two differences tell next to nothing
LEAST_TIMES = 10  # blocks of fewer say nothing


@dataclass(frozen=True)
class Pair:
    """Two methods, the better mean first; p-values are corrected for all pairs of a column."""

    first: str
    second: str
    found: Difference
    over: str
    """What n counts: seeds or times."""
    p: float
    exact: float
    """By sign flips; NaN over times, which are not independent."""


def pairs(group: Group, column: Column) -> list[Pair]:
    """All pairs of methods that have this score."""
    values = {
        method: {seed: value for seed, value in found.items() if math.isfinite(value)}
        for method, found in by_seed(group.scores, column).items()
    }
    sign = -1 if column.better == "higher" else 1
    ranked = sorted((m for m in values if values[m]), key=lambda m: (sign * np.mean(list(values[m].values())), m))
    found = [(one, other, *_apart(group, column, values, one, other)) for one, other in combinations(ranked, 2)]
    corrected, exact = holm([one[2].p for one in found]), holm([one[4] for one in found])
    return [Pair(*one[:4], float(p), float(flip)) for one, p, flip in zip(found, corrected, exact, strict=True)]


def _apart(
    group: Group, column: Column, values: Mapping[str, Mapping[int, float]], first: str, second: str
) -> tuple[Difference, str, float]:
    """The difference, what its n counts, and p by sign flips; nothing is tested below three seeds."""
    common = values[first].keys() & values[second].keys()
    if len(common) == 1 and (along := _along(group, column, first, second, *common)):
        return _possible(along, column), "times", math.nan
    by_pair = differences(values[first], values[second])
    found = _possible(paired(by_pair), column)
    if found.n < LEAST_SEEDS:
        return found._replace(p=math.nan), "seeds", math.nan
    return found, "seeds", sign_flip(by_pair)


def _possible(found: Difference, column: Column) -> Difference:
    """The interval cut at what is possible: shares are at most 1 apart."""
    most = 1.0 if column.share else math.inf
    low, high = cut(found.low, found.high, -most, most)
    return found._replace(low=low, high=high)


def _along(group: Group, column: Column, first: str, second: str, seed: int) -> Difference | None:
    """The mean difference over the times of the one stream that both met, if the metric is a mean over times."""
    scores = group.scores[group.scores["seed"] == seed]
    each = scores[(scores["metric"] == column.metric) & (scores["stat"] == "each") & scores["tau"].isna()]
    one, other = (each[each["method"] == method].dropna(subset="value") for method in (first, second))
    both = pd.merge(one, other, on="time", suffixes=("", "_other"))  # keeps the order of the first
    if column.stat != "mean" or len(both) < LEAST_TIMES:
        return None
    apart = (both["value"] - both["value_other"]).to_numpy()
    mean = float(apart.mean())
    drawn = resample_blocks(apart, DRAWS, Seed(seed).child("comparison").numpy())
    low, high = percentile_interval(drawn)
    extreme = int((np.abs(drawn - mean) >= abs(mean)).sum())
    return Difference(mean, float(low), float(high), len(apart), (extreme + 1) / (DRAWS + 1))
