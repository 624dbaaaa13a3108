"""Curves of the diagnostics that learners report, such as the norm of their scale parameters."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from driftline.record.run import Run
from driftline.report.analysis.aggregate import mean_over_seeds
from driftline.report.analysis.groups import Group
from driftline.types import JsonObject

MAX_POINTS = 100
KEYS = ["method", "gauge", "time"]


def diagnostic_curves(group: Group) -> pd.DataFrame:
    """Return each method's diagnostics by images seen, means over seeds; empty without such a stream of batches.

    A long run is thinned to the last value in each of 100 ranges of time.
    """
    is_stream = {"batch", "images"} <= group.options.keys()
    rows = [row for run in group.runs if is_stream for row in _diagnostics(run, group.labels[run.key])]
    if not rows:
        return pd.DataFrame()
    frame = pd.DataFrame(rows).groupby([*KEYS, "seed"], sort=False, as_index=False)["value"].mean()
    frame = frame.assign(low=np.nan, high=np.nan, n=1, unit="runs")
    order = {name: k for k, name in enumerate(dict.fromkeys(frame["gauge"]))}
    means = mean_over_seeds(frame, KEYS).reset_index()
    return means.sort_values(KEYS, key=lambda column: column.map(order) if column.name == "gauge" else column)


def _diagnostics(run: Run, label: str) -> Iterator[JsonObject]:
    table = run.table("diagnostics")
    if table.empty:
        return
    options = run.card.run.options
    steps = np.unique(table["step"])
    kept = [part[-1] for part in np.array_split(steps, min(MAX_POINTS, len(steps)))]
    table = table[table["step"].isin(kept)]
    for step, gauge, value in zip(table["step"], table["gauge"], table["value"], strict=True):
        seen = min((int(step) + 1) * options["batch"], options["images"])
        yield {"method": label, "gauge": gauge, "time": seen, "seed": run.seed, "value": float(value)}
