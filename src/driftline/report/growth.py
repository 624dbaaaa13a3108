"""What learners showed of their inside, such as the size of their scales, over time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from driftline.record import Run
from driftline.report.groups import Group
from driftline.report.spread import over_seeds

BENCHMARK = "test-time"
POINTS = 100  # of a curve
KEYS = ["method", "gauge", "time"]


def growth(group: Group) -> pd.DataFrame:
    """Each method's gauges by images seen: means over seeds with intervals; empty if none were shown on such a stream.

    Of a long run the last value in each of 100 stretches of time is taken.
    """
    ours = group.card["run"]["benchmark"] == BENCHMARK
    rows = [row for run in group.runs if ours for row in _gauges(run, group.labels[run.key])]
    if not rows:
        return pd.DataFrame()
    frame = pd.DataFrame(rows).groupby([*KEYS, "seed"], sort=False, as_index=False)["value"].mean()
    frame = frame.assign(low=np.nan, high=np.nan, n=1, unit="runs")
    gauges = {name: k for k, name in enumerate(dict.fromkeys(frame["gauge"]))}
    means = over_seeds(frame, KEYS).reset_index()
    return means.sort_values(KEYS, key=lambda column: column.map(gauges) if column.name == "gauge" else column)


def _gauges(run: Run, label: str) -> Iterator[dict[str, Any]]:
    table = run.table("gauges")
    if table.empty:
        return
    options = run.card["run"]["options"]
    steps = np.unique(table["step"])
    kept = [part[-1] for part in np.array_split(steps, min(POINTS, len(steps)))]
    table = table[table["step"].isin(kept)]
    for step, gauge, value in zip(table["step"], table["gauge"], table["value"], strict=True):
        seen = min((int(step) + 1) * options["batch"], options["images"])
        yield {"method": label, "gauge": gauge, "time": seen, "seed": run.seed, "value": float(value)}
