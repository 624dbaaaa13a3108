"""A metric of each method of a group, seed by seed, and what several of them come to."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from driftline.metrics.intervals import seed_interval
from driftline.report.grids import Entry
from driftline.report.groups import Group
from driftline.report.marks import PLAIN, Mark
from driftline.report.notes import FINAL
from driftline.report.spread import over_seeds


@dataclass(frozen=True)
class Measured:
    """A method's mean over seeds with its interval, and the seeds it comes from; a printed number has none."""

    value: float
    low: float = math.nan
    high: float = math.nan
    by_seed: Mapping[int, float] = field(default_factory=dict)

    def entry(self, mark: Mark = PLAIN) -> Entry:
        return Entry(self.value, self.low, self.high, len(self.by_seed), 1, mark)


def measured(group: Group, metric: str = FINAL, stat: str = "mean") -> dict[str, Measured]:
    """The methods of a group that have this score, which is a share."""
    scores = group.scores[(group.scores["metric"] == metric) & (group.scores["stat"] == stat)].dropna(subset="value")
    if scores.empty:
        return {}
    seeds = {str(name): dict(zip(rows["seed"], rows["value"], strict=True)) for name, rows in scores.groupby("method")}
    return {
        str(method): Measured(row["value"], max(0.0, row["low"]), min(1.0, row["high"]), seeds[str(method)])
        for method, row in over_seeds(scores, ["method"]).to_dict("index").items()
    }


def over(cells: Sequence[Measured], mark: Mark = PLAIN) -> Entry | None:
    """The mean of several; its interval is over the seeds, if all have the same two or more."""
    if not cells:
        return None
    value = float(np.mean([cell.value for cell in cells]))
    seeds = {tuple(sorted(cell.by_seed)) for cell in cells}
    common = seeds.pop() if len(seeds) == 1 else ()
    if len(common) < 2:
        return Entry(value, seeds=len(common), of=len(cells), mark=mark)
    low, high = seed_interval([float(np.mean([cell.by_seed[seed] for cell in cells])) for seed in common])
    return Entry(value, max(0.0, float(low)), min(1.0, float(high)), len(common), len(cells), mark)


def spread(cells: Sequence[Measured], mark: Mark = PLAIN) -> Entry | None:
    """The population standard deviation of several."""
    return Entry(float(np.std([cell.value for cell in cells])), of=len(cells), mark=mark) if cells else None
