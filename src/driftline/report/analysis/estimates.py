"""A metric of each method of a group, seed by seed, and what several of them come to."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from driftline.metrics.intervals import seed_interval
from driftline.report.analysis.aggregate import cut, over_seeds
from driftline.report.analysis.groups import Group
from driftline.report.analysis.highlights import PLAIN, Mark
from driftline.report.analysis.result_table import FINAL, bounds


@dataclass(frozen=True)
class Entry:
    """A number, as a rule a share, and what it rests on; one that a paper printed has no seeds."""

    value: float
    low: float = math.nan
    high: float = math.nan
    seeds: int = 0
    of: int = 1
    """Over how many runs of different networks or sequences it is a mean."""
    mark: Mark = PLAIN
    n: int = 0
    """What each seed's number rests on; 0 if that is not known."""
    unit: str = ""
    """What n counts: examples, times."""


@dataclass(frozen=True)
class Measured:
    """A method's mean over seeds with its interval, and the seeds it comes from; a printed number has none."""

    value: float
    low: float = math.nan
    high: float = math.nan
    by_seed: Mapping[int, float] = field(default_factory=dict)
    n: int = 0
    """What each seed's number rests on, the least of them; 0 if that is not known."""
    unit: str = ""

    @property
    def interval(self) -> str:
        """What the interval is over, if there is one."""
        return "" if math.isnan(self.low) else "seeds" if len(self.by_seed) > 1 else "examples"

    def entry(self, mark: Mark = PLAIN) -> Entry:
        seeds = len(self.by_seed)
        return Entry(self.value, self.low, self.high, seeds, mark=mark, n=self.n, unit=self.unit)


def measured(group: Group, metric: str = FINAL, stat: str = "mean") -> dict[str, Measured]:
    """The methods of a group that have this score."""
    scores = group.scores[(group.scores["metric"] == metric) & (group.scores["stat"] == stat)].dropna(subset="value")
    if scores.empty:
        return {}
    seeds = {str(name): dict(zip(rows["seed"], rows["value"], strict=True)) for name, rows in scores.groupby("method")}
    summary: dict[Any, Any] = over_seeds(scores, ["method"], bounds(metric)).to_dict("index")
    return {
        method: Measured(row["value"], row["low"], row["high"], seeds[method], int(row["n"]), row["unit"])
        for method, row in summary.items()
    }


def over(cells: Sequence[Measured], mark: Mark = PLAIN) -> Entry | None:
    """The mean of several; its interval is over the seeds, if all have the same two or more.

    Where cells differ in their seeds or in their n, the least of them is said.
    """
    if not cells:
        return None
    value = float(np.mean([cell.value for cell in cells]))
    seeds, n = min(len(cell.by_seed) for cell in cells), min(cell.n for cell in cells)
    made = Entry(value, seeds=seeds, of=len(cells), mark=mark, n=n, unit=cells[0].unit)
    known = {tuple(sorted(cell.by_seed)) for cell in cells}
    if seeds < 2 or len(known) > 1:
        return made
    by_seed = [float(np.mean([cell.by_seed[seed] for cell in cells])) for seed in known.pop()]
    low, high = cut(*seed_interval(by_seed))
    return replace(made, low=low, high=high)


def spread(cells: Sequence[Measured], mark: Mark = PLAIN) -> Entry | None:
    """The population standard deviation of several."""
    return Entry(float(np.std([cell.value for cell in cells])), of=len(cells), mark=mark) if cells else None
