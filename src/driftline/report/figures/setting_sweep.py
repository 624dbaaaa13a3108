"""Figures `setting-sweep` and `reset-interval`: accuracy by a setting of a method."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

import altair as alt
import pandas as pd

from driftline.registry import register
from driftline.report.analysis.groups import Group
from driftline.report.analysis.setting_sweep import sweep_points, varying_settings
from driftline.report.figures.axes import SIZE, Chart, independent_scales, method_color, method_dash, names, panels
from driftline.report.figures.base import Figure, Row, figure, option


@figure("setting-sweep", benchmarks=("test-time",))
@dataclass(frozen=True)
class SettingSweep(Figure):
    """Accuracy by a setting that varies between runs of one method."""

    setting: str | None = option(None, "A setting such as rdumb.reset_every. [default: all that vary]")
    averages_repeats = True

    @property
    def missing(self) -> str:
        return f"no methods that differ in {self.setting or 'a setting'}"

    def rows(self, group: Group) -> Iterable[Row]:
        for name in [self.setting] if self.setting else varying_settings(group):
            for point in sweep_points(group, name):
                score = point.score
                number = {"value": score.value, "low": score.low, "high": score.high}
                counts = {"seeds": score.seeds, "n": score.n, "interval": score.interval}
                yield {"setting": name, "method": point.method, "at": point.value, **number, **counts}

    def chart(self, frame: pd.DataFrame) -> Chart:
        settings = names(frame, "setting")
        y = alt.Y("value:Q", scale=alt.Scale(zero=False), axis=alt.Axis(title="accuracy", format=".0%"))
        x = alt.X("at:O", axis=alt.Axis(title=settings[0] if len(settings) == 1 else None, labelAngle=0))
        base = alt.Chart(width=1.2 * SIZE, height=0.8 * SIZE).encode(x=x, color=method_color(frame))
        tooltip = ["method:N", "setting:N", "at:Q", "value:Q", "low:Q", "high:Q", "seeds:Q"]
        line = base.mark_line(strokeWidth=1.8).encode(y=y, strokeDash=method_dash(frame))
        points = base.mark_point(filled=True, size=50, opacity=1).encode(y=y, tooltip=tooltip)
        interval = base.mark_rule(strokeWidth=2).encode(y=alt.Y("low:Q"), y2=alt.Y2("high:Q"))
        return independent_scales(panels(line + interval + points, frame, ["panel", "setting"]), "x")


register("figure", "reset-interval")(partial(SettingSweep, setting="rdumb.reset_every"))
