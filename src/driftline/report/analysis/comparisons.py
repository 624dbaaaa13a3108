"""Paired comparisons of methods: difference, interval and p-value over common seeds.

With one seed in common there is one stream, and the methods are compared along it: a moving-block bootstrap of their
differences over time. It describes the uncertainty of this stream only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd

from driftline.metrics.block_bootstrap import resample_blocks
from driftline.metrics.confidence import percentile_interval
from driftline.metrics.significance import Difference, holm, paired_t_test, sign_flip
from driftline.report.analysis.aggregate import clip_interval, paired_differences
from driftline.report.analysis.estimates import difference_bounds
from driftline.report.analysis.groups import Group
from driftline.report.analysis.result_table import Column, scores_by_seed
from driftline.seeds import Seed

RESAMPLES = 10_000
MIN_SEEDS = 3  # for a paired t-test
MIN_TIMES = 10  # for a block bootstrap


@dataclass(frozen=True)
class Comparison:
    """Two methods, the one with the better mean first; p-values are corrected for all pairs of a column."""

    first: str
    second: str
    difference: Difference
    over: str
    """What n counts: seeds or times."""
    p: float
    p_sign_flip: float
    """NaN over times, which are not independent."""


def compare_pairs(group: Group, column: Column) -> list[Comparison]:
    """Compare all pairs of methods that have a score."""
    values = {
        method: {seed: value for seed, value in by_seed.items() if math.isfinite(value)}
        for method, by_seed in scores_by_seed(group.summary, column).items()
    }
    sign = -1 if column.better == "higher" else 1
    ranked = sorted((m for m in values if values[m]), key=lambda m: (sign * np.mean(list(values[m].values())), m))
    found = [
        (first, second, *_difference(group, column, values, first, second)) for first, second in combinations(ranked, 2)
    ]
    corrected, sign_flips = holm([one[2].p for one in found]), holm([one[4] for one in found])
    return [
        Comparison(*one[:4], float(p), float(flip)) for one, p, flip in zip(found, corrected, sign_flips, strict=True)
    ]


def _difference(
    group: Group, column: Column, values: Mapping[str, Mapping[int, float]], first: str, second: str
) -> tuple[Difference, str, float]:
    """Return the difference, what its n counts, and the p-value of sign flips; three seeds are needed to test."""
    common = values[first].keys() & values[second].keys()
    if len(common) == 1 and (along := _difference_over_time(group, column, first, second, *common)):
        return _clip(along, column), "times", math.nan
    differences = paired_differences(values[first], values[second])
    found = _clip(paired_t_test(differences), column)
    if found.n < MIN_SEEDS:
        return found._replace(p=math.nan), "seeds", math.nan
    return found, "seeds", sign_flip(differences)


def _clip(found: Difference, column: Column) -> Difference:
    """Clip the interval to possible values: shares differ by at most 1."""
    low, high = clip_interval(found.low, found.high, *difference_bounds(column.metric))
    return found._replace(low=low, high=high)


def _difference_over_time(group: Group, column: Column, first: str, second: str, seed: int) -> Difference | None:
    """Return the mean difference over the times of one stream, if the metric is a mean over times."""
    scores = group.scores[group.scores["seed"] == seed]
    each = scores[(scores["metric"] == column.metric) & (scores["stat"] == "each") & scores["tau"].isna()]
    a, b = (each[each["method"] == method].dropna(subset="value") for method in (first, second))
    both = pd.merge(a, b, on="time", suffixes=("", "_other"))  # keeps the order of the first
    if column.stat != "mean" or len(both) < MIN_TIMES:
        return None
    differences = (both["value"] - both["value_other"]).to_numpy()
    mean = float(differences.mean())
    resampled = resample_blocks(differences, RESAMPLES, Seed(seed).child("comparison").numpy())
    low, high = percentile_interval(resampled)
    extreme = int((np.abs(resampled - mean) >= abs(mean)).sum())
    return Difference(mean, float(low), float(high), len(differences), (extreme + 1) / (RESAMPLES + 1))
