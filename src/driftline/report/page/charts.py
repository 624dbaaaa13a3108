"""Chart of the headline metric against compute."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from driftline.report.analysis.pareto import Price
from driftline.report.analysis.result_table import Column
from driftline.report.figures.charts import HEIGHT, SHAPES, WIDTH, colour, styled, tooltips

WIDE = 20  # from so many times the compute on, the axis is logarithmic
NAMED = 14  # with more methods their names would cover each other
NEUTRAL = "#8C8C8C"


def chart(data: str, methods: Sequence[str], found: Sequence[Price], column: Column) -> dict[str, Any]:
    """A mark per method with its interval, its name where there is room, and the frontier as a line of steps."""
    axis = alt.Axis(title=column.name, tickCount=5, format=".0%" if column.share else "~g")
    y = alt.Y("value:Q", scale=alt.Scale(zero=False, padding=8), axis=axis)
    colours = alt.Scale(domain=list(methods), range=[colour(k) for k in range(len(methods))])
    shapes = alt.Scale(domain=list(methods), range=[SHAPES[0]] * len(methods))
    at = alt.Chart(alt.NamedData(name=data), width=WIDTH, height=HEIGHT * 5 // 4).encode(
        x=_cost([one.gmac for one in found])
    )
    base = at.encode(color=alt.Color("method:N", scale=colours, legend=None))
    layers = [
        at.transform_filter("datum.frontier === 'yes'")
        .mark_line(color=NEUTRAL, strokeWidth=1.5, interpolate="step-after")
        .encode(y=y, order=alt.Order("gmac:Q")),
        base.mark_rule(strokeWidth=1.5).encode(y=alt.Y("low:Q"), y2="high:Q"),
        base.mark_point(filled=True, size=90, opacity=1).encode(
            y=y,
            shape=alt.Shape("method:N", scale=shapes, legend=None),
            tooltip=_told(column),
        ),
    ]
    if len(found) <= NAMED:
        layers.append(
            base.mark_text(align="left", dx=8, dy=-7, fontSize=11, limit=150).encode(y=y, text=alt.Text("method:N"))
        )
    title = f"Compute and {column.name} by method, with the frontier"
    return styled(alt.layer(*layers).properties(description=title))


def _cost(costs: Sequence[float]) -> alt.X:
    """The axis of compute: logarithmic where methods are far apart."""
    wide = min(costs) > 0 and max(costs) > WIDE * min(costs)
    scale = alt.Scale(type="log", nice=False, padding=20) if wide else alt.Scale(zero=False, nice=False, padding=20)
    axis = alt.Axis(title="GMAC per run", tickCount=5, format=",.3~r", labelOverlap=True)
    return alt.X("gmac:Q", scale=scale, axis=axis)


def _told(column: Column) -> list[alt.Tooltip]:
    return [
        alt.Tooltip("method:N"),
        alt.Tooltip("gmac:Q", title="GMAC per run", format=",.4~r"),
        *tooltips(column.name, share=column.share),
        alt.Tooltip("frontier:N", title="on the frontier"),
    ]
