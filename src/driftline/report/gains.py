"""What each method gains over another, such as the model that never changes, on the same streams."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from driftline.errors import UserError
from driftline.metrics.intervals import seed_interval
from driftline.report.cells import Measured, measured
from driftline.report.groups import Group
from driftline.report.spread import DIFFERENCE, cut


def gains(group: Group, over: str | None = None, metric: str = "oec", stat: str = "final") -> dict[str, Measured]:
    """The gain of every other method, over the seeds that it has in common with `over`; none without such seeds.

    `over` is a method as tables call it; without its settings, if that leaves no doubt. None: the baseline.
    """
    over = over or group.baseline
    cells = measured(group, metric, stat)
    base = [over] if over in cells else [method for method in cells if method.partition("(")[0] == over]
    if len(base) > 1:
        raise UserError(f"'{over}' may be any of {', '.join(base)}: say which, with its settings")
    if not base:
        return {}
    under = cells[base[0]]
    found = {method: _minus(cell.by_seed, under.by_seed) for method, cell in cells.items() if method not in base}
    return {
        method: replace(mean_of(by_seed, DIFFERENCE), n=min(cells[method].n, under.n), unit=under.unit)
        for method, by_seed in found.items()
        if by_seed
    }


def mean_of(by_seed: Mapping[int, float], within: tuple[float, float]) -> Measured:
    """The mean of one number per seed; its t-interval takes two of them and is cut at the ends of `within`.

    >>> mean_of({0: 0.1, 1: 0.3}, (-1, 1)).low, mean_of({0: 0.1}, (-1, 1)).low
    (-1.0, nan)
    """
    values = list(by_seed.values())
    low, high = seed_interval(values) if len(values) > 1 else (math.nan, math.nan)
    return Measured(float(np.mean(values)), *cut(low, high, *within), by_seed)


def _minus(one: Mapping[int, float], other: Mapping[int, float]) -> dict[int, float]:
    return {seed: one[seed] - other[seed] for seed in one if seed in other}
