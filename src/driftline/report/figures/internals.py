"""Figure `internals`: diagnostics that learners report over time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import altair as alt
import pandas as pd

from driftline.report.analysis.groups import Group
from driftline.report.analysis.internals import diagnostic_curves
from driftline.report.figures.axes import (
    COLUMNS,
    SIZE,
    Chart,
    curves_over_images,
    inline_data,
    names,
    one_below_another,
    value_range,
)
from driftline.report.figures.base import Figure, Row, figure, records

TABLE = ["gauge", "method", "time", "value", "low", "high", "seeds", "n"]


@figure("internals", benchmarks=("test-time",))
@dataclass(frozen=True)
class Internals(Figure):
    """Diagnostics that methods report, such as the norm of their scales, over time."""

    missing = "no method that reports diagnostics"
    averages_repeats = True

    def rows(self, group: Group) -> Iterable[Row]:
        curves = diagnostic_curves(group)
        return [] if curves.empty else records(curves, TABLE)

    def chart(self, frame: pd.DataFrame) -> Chart:
        methods = names(frame)

        def panel(rows: pd.DataFrame) -> Chart:
            curves = [
                curves_over_images(inline_data(part), methods, str(gauge), value_range(part))
                for gauge, part in rows.groupby("gauge", sort=False)
            ]
            sized = [one.properties(width=1.2 * SIZE, height=0.7 * SIZE) for one in curves]
            return alt.concat(*sized, columns=COLUMNS)

        return one_below_another(frame, panel)
