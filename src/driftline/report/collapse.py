"""The figure of the experiment in two dimensions: accuracy, entropy and the size of the scales over time."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from driftline.report.figures.palette import color

PANELS = {"accuracy": "accuracy", "entropy": "entropy in nats", "scales": "length of the scales"}


def collapse_chart(frame: pd.DataFrame) -> Any:
    """Three panels beside each other, a line per condition."""
    conditions = [int(condition) for condition in frame["condition"].unique()]
    colours = alt.Scale(domain=conditions, range=[color(k) for k in range(len(conditions))])
    base = alt.Chart(frame, width=220, height=180).mark_line(strokeWidth=2)
    panels = [
        base.encode(
            x=alt.X("step:Q", axis=alt.Axis(title="step", tickCount=3)),
            y=alt.Y(f"{column}:Q", scale=alt.Scale(zero=False), axis=alt.Axis(title=title, tickCount=5)),
            color=alt.Color("condition:N", scale=colours, legend=alt.Legend(title="condition")),
        )
        for column, title in PANELS.items()
    ]
    return alt.hconcat(*panels)
