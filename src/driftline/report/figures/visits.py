"""Figure `visits`: accuracy in each visit to a recurring sequence of corruptions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import altair as alt
import numpy as np
import pandas as pd

from driftline.metrics.confidence import wilson
from driftline.record.run import Run
from driftline.report.analysis.aggregate import SHARE, mean_over_seeds
from driftline.report.analysis.groups import Group
from driftline.report.figures.axes import (
    LEGEND,
    Chart,
    estimate_tooltips,
    inline_data,
    line_with_band,
    names,
    one_below_another,
    value_range,
)
from driftline.report.figures.base import Figure, Row, figure, records
from driftline.streams.test_time.schedule import Schedule


@figure("visits", benchmarks=("test-time",))
@dataclass(frozen=True)
class Visits(Figure):
    """Accuracy in each complete visit to the sequence of corruptions: whether it holds when corruptions recur."""

    missing = "no stream that visits its corruptions more than once"

    def rows(self, group: Group) -> Iterable[Row]:
        length = _length(group)
        runs = [run for run in group.runs if len(run.table("answers"))]
        if runs and length and int(group.options["images"]) >= 2 * length:
            each = pd.concat([_accuracies(run, length).assign(method=group.labels[run.key]) for run in runs])
            means = mean_over_seeds(each, ["method", "visit"], SHARE).reset_index()
            yield from records(means, ["method", "visit", "value", "low", "high", "seeds", "n", "interval"])

    def chart(self, frame: pd.DataFrame) -> Chart:
        def panel(part: pd.DataFrame) -> Chart:
            x = alt.X("visit:Q", axis=alt.Axis(title="visit", format="d", tickMinStep=1))
            scale = alt.Scale(domain=list(value_range(part)), zero=False)
            y = alt.Y("value:Q", scale=scale, axis=alt.Axis(title="accuracy", format=".0%", tickCount=5))
            tooltip = [alt.Tooltip("method:N"), *estimate_tooltips("accuracy", ("visit", "visit"))]
            data = inline_data(part)
            return line_with_band(data, names(frame), x, y, tooltip, scale=scale, legend=LEGEND, point_size=40)

        return one_below_another(frame, panel)


def _length(group: Group) -> int:
    """Return the number of images in a visit; 0 if corruptions do not come in a sequence."""
    schedule = group.card.protocol.get("schedule")
    if schedule is None or schedule["mixed"]:
        return 0
    return len(Schedule.from_card(schedule).points) * int(group.options["images_per_point"])


def _accuracies(run: Run, length: int) -> pd.DataFrame:
    """Return the accuracy of a run in each complete visit."""
    correct = run.table("answers")["correct"].to_numpy(float)
    visits = len(correct) // length
    right = correct[: visits * length].reshape(visits, length).sum(axis=1)
    low, high = wilson(right, length)
    values = {"value": right / length, "low": low, "high": high, "n": length, "unit": "examples"}
    return pd.DataFrame({"visit": np.arange(1, visits + 1), "seed": run.seed, **values})
