"""Charts of numbers over images seen: a line per method, a band for its interval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from driftline.report.figures.charts import HEIGHT, LEGEND, WIDTH, colour, dash, faint, styled

PLAIN = "format(datum.value, '~g')"


def track(
    data: Any,
    methods: Sequence[str],
    name: str,
    span: tuple[float, float],
    legend: alt.Legend | None = LEGEND,
    labels: str = PLAIN,
) -> alt.LayerChart:
    """Not yet in the style of a page; `labels` says how numbers on the axis are written."""
    colours = alt.Scale(domain=list(methods), range=[colour(k) for k in range(len(methods))])
    dashes = alt.Scale(domain=list(methods), range=[dash(k) for k in range(len(methods))])
    scale = alt.Scale(domain=list(span), zero=False)
    y = alt.Y("value:Q", scale=scale, axis=alt.Axis(title=name, labelExpr=labels, tickCount=5))
    base = alt.Chart(data, width=WIDTH, height=HEIGHT, description=f"{name} over images seen, by method").encode(
        x=alt.X("time:Q", axis=alt.Axis(title="images seen", tickCount=5, format=",d")),
        color=alt.Color("method:N", scale=colours, legend=legend),
    )
    told = ["method:N", alt.Tooltip("time:Q", title="images seen"), "value:Q", "low:Q", "high:Q", "n:Q", "seeds:Q"]
    band = base.mark_area(opacity=faint(methods), clip=True).encode(y=alt.Y("low:Q", scale=scale), y2="high:Q")
    line = base.mark_line(strokeWidth=2, clip=True).encode(
        y=y, strokeDash=alt.StrokeDash("method:N", scale=dashes, legend=legend), tooltip=told
    )
    both: alt.LayerChart = band + line
    return both


def page_track(data: str, methods: Sequence[str], name: str, span: tuple[float, float]) -> dict[str, Any]:
    """The same in the style of a page, which tells methods apart elsewhere."""
    return styled(track(alt.NamedData(name=data), methods, name, span, legend=None))


def room(rows: pd.DataFrame) -> tuple[float, float]:
    """The range of the values, and of their intervals as far as these do not drown them: with two seeds they would.

    >>> room(pd.DataFrame({"value": [1.0, 3.0], "low": [0.5, -9.0], "high": [1.5, float("nan")]}))
    (0.0, 3.0)
    """
    low, high = float(rows["value"].min()), float(rows["value"].max())
    more = (high - low) / 2 or abs(low) / 20 or 0.05
    ends = float(np.nanmin(rows[["value", "low"]])), float(np.nanmax(rows[["value", "high"]]))
    return max(ends[0], low - more), min(ends[1], high + more)
