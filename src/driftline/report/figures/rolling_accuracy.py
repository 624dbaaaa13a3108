"""Figure `rolling-accuracy`: accuracy in consecutive windows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import altair as alt
import pandas as pd

from driftline.report.analysis.curves import curve
from driftline.report.analysis.groups import Group
from driftline.report.figures.axes import LEGEND, SIZE, Chart, line_with_band, names, panels
from driftline.report.figures.base import Figure, Row, figure


@figure("rolling-accuracy", benchmarks=("open-world",))
@dataclass(frozen=True)
class RollingAccuracy(Figure):
    """Accuracy in consecutive windows of samples, means over seeds with intervals."""

    missing = "no accuracy in windows"

    def rows(self, group: Group) -> Iterable[Row]:
        return ({**row, "time": int(row["time"])} for row in curve(group, "rolling").records())

    def chart(self, frame: pd.DataFrame) -> Chart:
        x = alt.X("time:Q", axis=alt.Axis(title="samples seen", tickCount=5, format=",d"))
        y = alt.Y("value:Q", axis=alt.Axis(title="accuracy in a window", format=".0%", tickCount=5))
        tooltip = ["method:N", "time:Q", "value:Q", "low:Q", "high:Q", "n:Q", "seeds:Q"]
        lines = line_with_band(alt.Undefined, names(frame), x, y, tooltip, legend=LEGEND, point_size=18)
        return panels(lines.properties(width=1.6 * SIZE, height=SIZE), frame, ["panel"])
