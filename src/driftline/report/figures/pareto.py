"""Figure `pareto`: a metric against compute."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import altair as alt
import pandas as pd

from driftline import registry
from driftline.metrics import title
from driftline.report.analysis.estimates import estimates, is_share
from driftline.report.analysis.groups import Group
from driftline.report.analysis.pareto import is_dominated
from driftline.report.analysis.result_table import mean_gmac
from driftline.report.figures.axes import SIZE, Chart, independent_scales, method_color, method_shape, panels
from driftline.report.figures.base import Figure, Row, figure, option
from driftline.report.figures.palette import NEUTRAL

CACHED, UNCACHED = "with cached features", "without cached features"


@figure("pareto")
@dataclass(frozen=True)
class Pareto(Figure):
    """A metric against compute, with the Pareto front; where features were cached, also without caching."""

    metric: str | None = option(None, "The metric. [default: the first headline metric that is a share]")

    @property
    def missing(self) -> str:
        return f"no {self.metric or 'share'} of runs whose compute is counted"

    def rows(self, group: Group) -> Iterable[Row]:
        headline = registry.get("benchmark", group.benchmark).headline_metrics
        fitting = [pair for pair in headline if (pair[0] == self.metric if self.metric else is_share(pair[0]))]
        metric, stat = fitting[0] if fitting else (str(self.metric), "mean")
        cached = any(run.card.compute.cached_macs for run in group.runs)
        for compute in (CACHED, UNCACHED) if cached else (CACHED,):
            found = list(_points(group, metric, stat, compute))
            ranked = [(row["gmac"], row["value"]) for row in found if row["method"] in group.ranked]
            for row in found:
                on_front = row["method"] in group.ranked and not is_dominated((row["gmac"], row["value"]), ranked)
                yield {"metric": metric, **row, "on_front": on_front}

    def chart(self, frame: pd.DataFrame) -> Chart:
        metric = str(frame["metric"].iloc[0])
        axis = alt.Axis(title=title(metric), format=".0%" if is_share(metric) else "~g", tickCount=5)
        y = alt.Y("value:Q", scale=alt.Scale(zero=False), axis=axis)
        x = alt.X("gmac:Q", scale=alt.Scale(type="log"), axis=alt.Axis(title="GMAC", tickCount=5, format="~s"))
        base = alt.Chart(width=1.4 * SIZE, height=1.1 * SIZE).encode(x=x)
        front = base.transform_filter("datum.on_front").mark_line(interpolate="step-after", color=NEUTRAL)
        tooltip = ["method:N", "gmac:Q", "value:Q", "low:Q", "high:Q", "seeds:Q", "n:Q", "on_front:N"]
        interval = base.mark_rule(strokeWidth=1.5).encode(
            y=alt.Y("low:Q"), y2=alt.Y2("high:Q"), color=method_color(frame)
        )
        points = base.mark_point(filled=True, size=70, opacity=1).encode(
            y=y, color=method_color(frame), shape=method_shape(frame), tooltip=tooltip
        )
        return independent_scales(panels(front.encode(y=y) + interval + points, frame, ["panel", "compute"]), "x")


def _points(group: Group, metric: str, stat: str, compute: str) -> Iterable[Row]:
    for method, score in estimates(group, metric, stat).items():
        gmac = mean_gmac(group, method, uncached=compute == UNCACHED)
        if gmac is not None:
            number = {"value": score.value, "low": score.low, "high": score.high, "interval": score.interval}
            counts = {"seeds": score.seeds, "n": score.n, "unit": score.unit}
            yield {"compute": compute, "method": method, "gmac": gmac, **number, **counts}
