"""Methods of `test-time` compared with the frozen model on the same stream.

Gaps are paired: the same seed has the same images. A method has collapsed if its mean accuracy is below that of the
frozen model (Press et al. 2023, RDumb); `metrics.collapse.collapsed` finds since when, how deep, and how fast the
method had adapted, window by window.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import cast

import numpy as np
import pandas as pd

from driftline.metrics.collapse import collapsed
from driftline.report.analysis.aggregate import DIFFERENCE, SHARE, mean_over_seeds, to_common_end
from driftline.report.analysis.estimates import Estimate, estimate_from_seeds
from driftline.report.analysis.groups import Group

STREAM = "stream-accuracy"


@dataclass(frozen=True)
class BaselineComparison:
    """A method against the frozen model, over common seeds. Positions are counted in images."""

    method: str
    seeds: int
    gain: Estimate
    """Mean accuracy minus that of the frozen model."""
    collapsed: int
    """Number of seeds with a negative gain."""
    worse_to_the_end: int
    """Number of seeds in which it is worse in every window from some point on."""
    worse_since: float | None
    """That point: the median over these seeds."""
    max_drop: Estimate
    """Largest deficit in a window."""
    adapted_after: float | None
    """Images until half of its largest gain: the median over seeds in which it is ever better."""
    n: int
    """Smallest number of images in a window."""


def compare_with_frozen(group: Group) -> list[BaselineComparison]:
    """Return the comparison of each method with the frozen model; empty if that was not run."""
    curves, means = _curves(group), _means(group)
    baseline = group.baseline
    frozen = curves.get(baseline, {}) if baseline else {}
    compared = []
    for method, by_seed in curves.items():
        seeds = [seed for seed in by_seed if seed in frozen]
        if method != baseline and seeds:
            pairs = {seed: (by_seed[seed], frozen[seed]) for seed in seeds}
            gains = {seed: means[method, seed] - means[str(baseline), seed] for seed in seeds}
            compared.append(_compare(method, pairs, gains))
    return compared


def gap_curves(group: Group) -> pd.DataFrame:
    """Return each method's accuracy minus that of the frozen model in each window, means over seeds."""
    curves, baseline = _curves(group), group.baseline
    frozen = curves.get(baseline, {}) if baseline else {}
    rows = [
        {"method": method, "seed": seed, "time": time, "value": value, "n": n}
        for method, by_seed in curves.items()
        if method != baseline
        for seed, curve in by_seed.items()
        if seed in frozen
        for time, value, n in _gaps(curve, frozen[seed])
    ]
    if not rows:
        return pd.DataFrame()
    frame = pd.DataFrame(rows).assign(low=np.nan, high=np.nan, unit="examples")
    summary = mean_over_seeds(frame, ["method", "time"], DIFFERENCE).reset_index()
    return to_common_end(summary.sort_values(["method", "time"]))


def _curves(group: Group) -> dict[str, dict[int, pd.DataFrame]]:
    """Return accuracy by window, for each method and seed, in the order of time."""
    scores = group.scores
    each = scores[(scores["metric"] == STREAM) & (scores["stat"] == "each")]
    each = each.assign(time=each["time"].astype(int))
    curves: dict[str, dict[int, pd.DataFrame]] = {}
    for (method, seed), rows in each.groupby(["method", "seed"]):
        curves.setdefault(str(method), {})[cast(int, seed)] = rows.sort_values("time")[["time", "value", "n"]]
    return curves


def _means(group: Group) -> dict[tuple[str, int], float]:
    scores = group.scores
    rows = scores[(scores["metric"] == STREAM) & (scores["stat"] == "mean")]
    names = zip(rows["method"], rows["seed"], rows["value"], strict=True)
    return {(str(method), int(seed)): float(value) for method, seed, value in names}


def _gaps(curve: pd.DataFrame, frozen: pd.DataFrame) -> Iterator[tuple[int, float, int]]:
    both = curve.merge(frozen, on="time", suffixes=("", "_frozen"))
    return zip(both["time"], both["value"] - both["value_frozen"], both["n"], strict=True)


def _compare(
    method: str, pairs: Mapping[int, tuple[pd.DataFrame, pd.DataFrame]], gains: Mapping[int, float]
) -> BaselineComparison:
    found = {seed: collapsed(curve["value"], frozen["value"]) for seed, (curve, frozen) in pairs.items()}
    ends = {seed: curve["time"].tolist() for seed, (curve, _) in pairs.items()}
    since = [_start(ends[seed], one.since) for seed, one in found.items() if one.since is not None]
    adapted = [ends[seed][one.adapted] for seed, one in found.items() if one.adapted is not None]
    return BaselineComparison(
        method=method,
        seeds=len(pairs),
        gain=estimate_from_seeds(gains, DIFFERENCE),
        collapsed=sum(gain < 0 for gain in gains.values()),
        worse_to_the_end=len(since),
        worse_since=_median(since),
        max_drop=estimate_from_seeds({seed: one.depth for seed, one in found.items()}, SHARE),
        adapted_after=_median(adapted),
        n=min(int(curve["n"].min()) for curve, _ in pairs.values()),
    )


def _start(ends: list[int], window: int) -> int:
    """Return the number of images before a window."""
    return ends[window - 1] if window else 0


def _median(values: list[int]) -> float | None:
    return float(np.median(values)) if values else None
