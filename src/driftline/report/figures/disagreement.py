"""Figure `disagreement`: how often methods answer differently."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import pandas as pd

from driftline.metrics import title
from driftline.report.analysis.curves import time_names
from driftline.report.analysis.disagreement import ANSWERS, disagreement, parse_step_ranges
from driftline.report.analysis.groups import Group
from driftline.report.figures.axes import Chart, Data, names, panels
from driftline.report.figures.base import Figure, Row, figure, option
from driftline.report.figures.palette import BLUE, RED, WHITE
from driftline.types import JsonObject


@figure("disagreement", benchmarks=("refinement",))
@dataclass(frozen=True)
class Disagreement(Figure):
    """Share of queries that two methods answer differently, or the difference of a metric, by ranges of steps."""

    step_ranges: str | None = option(None, "First and last steps. [default: 10-20,30-40, or two halves]")
    metric: str | None = option(None, "A metric to compare instead of answers.")
    missing = "no two methods in a stream of queries"

    def fits(self, group: Group) -> bool:
        return "composition" in group.card.protocol

    def rows(self, group: Group) -> Iterable[Row]:
        ranges = parse_step_ranges(self.step_ranges, len(time_names(group)))
        return ({"of": self.metric or ANSWERS, **row} for row in disagreement(group, ranges, self.metric))

    def chart(self, frame: pd.DataFrame) -> Chart:
        measure, kinds = str(frame["of"].iloc[0]), names(frame, "panel")
        signed = measure != ANSWERS
        name = f"{title(measure)}, row less column" if signed else measure
        squares = pair_matrix(alt.Undefined, sorted(set(frame["method"])), frame["value"].tolist(), name, signed)
        heading = ": ".join([name, *kinds[: len(kinds) == 1]])
        return panels(squares, frame, ["panel", "steps"]).properties(title=heading)


def pair_matrix(
    data: Data, methods: Sequence[str], values: Sequence[float], name: str, signed: bool = False
) -> alt.LayerChart:
    """Return a matrix with a number for each pair of methods, the first in the row; `values` set the color scale."""
    far = max(map(abs, values), default=0.0) or 1.0
    low = -far if signed else min(values, default=0.0)
    colors: JsonObject = {"range": [RED, WHITE, BLUE], "interpolate": "lab"} if signed else {"scheme": "blues"}
    scale = alt.Scale(domain=[low, 0, far] if signed else [low, far], **colors)
    sort = list(methods)
    axis: JsonObject = {"title": None, "ticks": False, "domain": False, "labelLimit": 220}
    side = alt.Step(max(34, 260 // max(1, len(methods))))
    counts: list[Any] = [
        "low:Q",
        "high:Q",
        "seeds:Q",
        alt.Tooltip("n:Q", title="queries or steps per seed", format=","),
    ]
    base = alt.Chart(data, width=side, height=side).encode(
        x=alt.X("other:N", sort=sort, scale=alt.Scale(domain=sort), axis=alt.Axis(**axis, labelAngle=-45)),
        y=alt.Y("method:N", sort=sort, scale=alt.Scale(domain=sort), axis=alt.Axis(**axis)),
        tooltip=["method:N", "other:N", alt.Tooltip("value:Q", title=name, format=".1%"), *counts],
    )
    dark = f"abs(datum.value) > {0.7 * far}" if signed else f"datum.value > {(low + far) / 2}"
    cells = base.mark_rect().encode(color=alt.Color("value:Q", scale=scale, legend=None))
    numbers = base.mark_text(fontSize=10).encode(
        text=alt.Text("value:Q", format="+.1%" if signed else ".1%"),
        color=alt.condition(dark, alt.value(WHITE), alt.value("#222222")),
    )
    both: alt.LayerChart = (cells + numbers).properties(description=f"{name} of each two methods")
    return both
