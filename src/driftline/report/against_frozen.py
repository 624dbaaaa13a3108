"""How methods of `test-time` stand to the model that never adapts, on the same stream.

Leads are paired: the same seed has the same images. A method has collapsed if its mean accuracy is below that of the
frozen model (Press et al. 2023, RDumb); `metrics.collapse.collapsed` says since when, how deep, and how soon it had
adapted, window by window.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import cast

import numpy as np
import pandas as pd

from driftline.metrics.collapse import collapsed
from driftline.metrics.intervals import seed_interval
from driftline.report.groups import Group
from driftline.report.marks import FROZEN
from driftline.report.spread import DIFFERENCE, over_seeds, to_common_end

STREAM = "stream-accuracy"


@dataclass(frozen=True)
class Number:
    """A mean over seeds; the t-interval takes two of them, and is cut at what is possible."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Standing:
    """A method against the frozen model, over the seeds that both have. Places are counted in images."""

    method: str
    seeds: int
    gain: Number
    """Mean accuracy less that of the frozen model."""
    collapsed: int
    """In how many seeds that is below 0."""
    behind: int
    """In how many seeds it is behind in every window from some point on to the end."""
    since: float | None
    """Where that point is: the median over these seeds."""
    depth: Number
    """How far it is behind in its worst window."""
    adapted: float | None
    """After how many images it has half of its greatest lead: the median over seeds in which it is ever ahead."""
    n: int
    """Images in a window, the least there are."""


def standings(group: Group) -> list[Standing]:
    """All methods but the frozen model; none without it."""
    curves, means = _curves(group), _means(group)
    frozen = curves.get(FROZEN, {})
    found = []
    for method, by_seed in curves.items():
        seeds = [seed for seed in by_seed if seed in frozen]
        if method != FROZEN and seeds:
            pairs = {seed: (by_seed[seed], frozen[seed]) for seed in seeds}
            gains = {seed: means[method, seed] - means[FROZEN, seed] for seed in seeds}
            found.append(_standing(method, pairs, gains))
    return found


def leads(group: Group) -> pd.DataFrame:
    """Each method's lead over the frozen model in each window: method, time, and its mean over seeds."""
    curves = _curves(group)
    frozen = curves.get(FROZEN, {})
    rows = [
        {"method": method, "seed": seed, "time": time, "value": value, "n": n}
        for method, by_seed in curves.items()
        if method != FROZEN
        for seed, curve in by_seed.items()
        if seed in frozen
        for time, value, n in _lead(curve, frozen[seed])
    ]
    if not rows:
        return pd.DataFrame()
    frame = pd.DataFrame(rows).assign(low=np.nan, high=np.nan, unit="examples")
    summary = over_seeds(frame, ["method", "time"], DIFFERENCE).reset_index()
    return to_common_end(summary.sort_values(["method", "time"]))


def _curves(group: Group) -> dict[str, dict[int, pd.DataFrame]]:
    """Accuracy by window, for each method and seed, in the order of time."""
    scores = group.scores
    each = scores[(scores["metric"] == STREAM) & (scores["stat"] == "each")]
    each = each.assign(time=each["time"].astype(int))
    found: dict[str, dict[int, pd.DataFrame]] = {}
    for (method, seed), rows in each.groupby(["method", "seed"]):
        found.setdefault(str(method), {})[cast(int, seed)] = rows.sort_values("time")[["time", "value", "n"]]
    return found


def _means(group: Group) -> dict[tuple[str, int], float]:
    scores = group.scores
    rows = scores[(scores["metric"] == STREAM) & (scores["stat"] == "mean")]
    names = zip(rows["method"], rows["seed"], rows["value"], strict=True)
    return {(str(method), int(seed)): float(value) for method, seed, value in names}


def _lead(ours: pd.DataFrame, theirs: pd.DataFrame) -> Iterator[tuple[int, float, int]]:
    both = ours.merge(theirs, on="time", suffixes=("", "_frozen"))
    return zip(both["time"], both["value"] - both["value_frozen"], both["n"], strict=True)


def _standing(
    method: str, pairs: Mapping[int, tuple[pd.DataFrame, pd.DataFrame]], gains: Mapping[int, float]
) -> Standing:
    found = {seed: collapsed(ours["value"], theirs["value"]) for seed, (ours, theirs) in pairs.items()}
    ends = {seed: ours["time"].tolist() for seed, (ours, _) in pairs.items()}
    since = [_begin(ends[seed], one.since) for seed, one in found.items() if one.since is not None]
    adapted = [ends[seed][one.adapted] for seed, one in found.items() if one.adapted is not None]
    return Standing(
        method=method,
        seeds=len(pairs),
        gain=_over(gains, -1.0),
        collapsed=sum(gain < 0 for gain in gains.values()),
        behind=len(since),
        since=_median(since),
        depth=_over({seed: one.depth for seed, one in found.items()}, 0.0),
        adapted=_median(adapted),
        n=min(int(ours["n"].min()) for ours, _ in pairs.values()),
    )


def _begin(ends: list[int], window: int) -> int:
    """How many images were seen before a window."""
    return ends[window - 1] if window else 0


def _median(values: list[int]) -> float | None:
    return float(np.median(values)) if values else None


def _over(by_seed: Mapping[int, float], lowest: float) -> Number:
    values = list(by_seed.values())
    low, high = np.clip(seed_interval(values), lowest, 1.0) if len(values) > 1 else (math.nan, math.nan)
    return Number(float(np.mean(values)), float(low), float(high))
