"""Figure `collapse`: accuracy minus that of the frozen model over time."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import altair as alt
import pandas as pd

from driftline.report.analysis.frozen_baseline import compare_with_frozen, gap_curves
from driftline.report.analysis.groups import Group
from driftline.report.figures.axes import (
    POINTS,
    SIZE,
    TEXT,
    Chart,
    curves_over_images,
    inline_data,
    names,
    one_below_another,
    value_range,
)
from driftline.report.figures.base import Figure, Row, figure, records
from driftline.report.figures.palette import NEUTRAL
from driftline.report.format import count_of, format_images
from driftline.types import JsonObject

CURVE = ["time", "value", "low", "high", "seeds", "n"]
SUMMARY = ("gain in points", "collapsed", "behind from", "deepest", "adapted by")


@figure("collapse", benchmarks=("test-time",))
@dataclass(frozen=True)
class Collapse(Figure):
    """Accuracy minus that of the frozen model over time, paired by seed, and a summary of each method."""

    missing = "no frozen and another method on a stream of corrupted images"
    averages_repeats = True

    def rows(self, group: Group) -> Iterable[Row]:
        curves = gap_curves(group)
        for one in compare_with_frozen(group):
            gain = {"gain": one.gain.value, "gain_low": one.gain.low, "gain_high": one.gain.high}
            drop = {
                "max_drop": one.max_drop.value,
                "max_drop_low": one.max_drop.low,
                "max_drop_high": one.max_drop.high,
            }
            counts = {"collapsed": one.collapsed, "worse_to_the_end": one.worse_to_the_end}
            places = {"worse_since": one.worse_since, "adapted_after": one.adapted_after}
            for row in records(curves[curves["method"] == one.method], CURVE):
                yield {"method": one.method, **row, **gain, **counts, **places, **drop}

    def chart(self, frame: pd.DataFrame) -> Chart:
        methods = names(frame)

        def panel(part: pd.DataFrame) -> Chart:
            lines = curves_over_images(
                inline_data(part), methods, "points above frozen", value_range(part), labels=POINTS
            )
            zero = alt.Chart().mark_rule(strokeDash=[4, 3], color=NEUTRAL).encode(y=alt.datum(0))
            return alt.hconcat((zero + lines).properties(width=1.6 * SIZE, height=SIZE), _summary(part))

        return one_below_another(frame, panel)


def _summary(part: pd.DataFrame) -> Chart:
    """Return the summary of each method as a table of text."""
    cells = []
    for method, rows in part.groupby("method", sort=False):
        texts = _texts(rows.iloc[0])
        cells += [{"method": method, "column": name, "text": text} for name, text in zip(SUMMARY, texts, strict=True)]
    axis: JsonObject = {"title": None, "ticks": False, "domain": False, "grid": False}
    x = alt.X("column:N", sort=list(SUMMARY), axis=alt.Axis(**axis, orient="top", labelAngle=0, labelLimit=130))
    y = alt.Y("method:N", sort=names(part), axis=alt.Axis(**axis, labelLimit=220))
    base = alt.Chart(inline_data(pd.DataFrame(cells)), width=alt.Step(112), height=alt.Step(22))
    return base.mark_text(fontSize=10, color=TEXT).encode(x=x, y=y, text=alt.Text("text:N"))


def _texts(row: pd.Series[Any]) -> list[str]:
    seeds, worse = int(row["seeds"]), int(row["worse_to_the_end"])
    gain = f"{100 * row['gain']:+.1f}"
    if not math.isnan(row["gain_low"]):
        gain += f" [{100 * row['gain_low']:+.1f}, {100 * row['gain_high']:+.1f}]"
    return [
        gain,
        f"{int(row['collapsed'])} of {count_of(seeds, 'seed')}",
        f"{format_images(row['worse_since'])} ({worse} of {seeds})" if worse else format_images(None),
        f"{100 * row['max_drop']:.1f}",
        format_images(row["adapted_after"]),
    ]
