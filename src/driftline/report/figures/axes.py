"""Parts that charts share: scales of methods, axes, panels, tooltips, and lines with bands."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from driftline.report.analysis.curves import Series
from driftline.report.figures.palette import color, dash, shape

SIZE = 230  # of a panel
WIDTH, HEIGHT = 510, 200  # of a chart on the page
COLUMNS = 3  # charts side by side
TEXT, PALE = "#222222", "#DDDDDD"
MAX_LABELS = 12  # along an axis
FEW_BANDS = 2  # more bands are drawn fainter
LEGEND = alt.Legend(title=None, symbolType="stroke", symbolStrokeWidth=2, symbolOpacity=1)
POINTS = "format(100 * datum.value, '+.0f')"  # axis labels of differences in percentage points

Chart = Any  # altair has a class for every way to combine charts
Data = Any  # a frame, a name, or nothing where a chart gets its data later: altair has a class for each


def method_scale(methods: Sequence[str], value: Callable[[int], str] | Callable[[int], list[int]] = color) -> alt.Scale:
    """Return the scale of a channel that distinguishes methods."""
    return alt.Scale(domain=list(methods), range=[value(k) for k in range(len(methods))])


def method_color(frame: pd.DataFrame) -> alt.Color:
    """Return a color for each method, the same in all panels."""
    legend = alt.Legend(title=None, symbolStrokeWidth=2)
    return alt.Color("method:N", scale=method_scale(names(frame)), legend=legend)


def method_shape(frame: pd.DataFrame) -> alt.Shape:
    """Return shapes that distinguish methods once the colors repeat."""
    return alt.Shape("method:N", scale=method_scale(names(frame), shape))


def method_dash(frame: pd.DataFrame) -> alt.StrokeDash:
    """Return dashes that distinguish methods once the colors repeat."""
    return alt.StrokeDash("method:N", scale=method_scale(names(frame), dash))


def names(frame: pd.DataFrame, column: str = "method") -> list[str]:
    """Return the values of a column in order of appearance."""
    return list(dict.fromkeys(frame[column]))


def panels(chart: Chart, frame: pd.DataFrame, by: list[str]) -> Chart:
    """Return one panel for each value of the columns `by` that vary."""
    varying = [name for name in by if frame[name].nunique() > 1]
    if not varying:
        return chart.properties(data=inline_data(frame), title=str(frame[by[0]].iloc[0]))
    order = {name: names(frame, name) for name in varying}
    if len(varying) == 1:
        [(name, sort)] = order.items()
        title = "" if name == by[0] else str(frame[by[0]].iloc[0])
        facet = alt.Facet(f"{name}:N", title=None, sort=sort)
        return chart.facet(facet=facet, columns=COLUMNS, data=inline_data(frame)).properties(title=title)
    down, across = varying
    row = alt.Row(f"{down}:N", title=None, sort=order[down])
    column = alt.Column(f"{across}:N", title=None, sort=order[across])
    return chart.facet(row=row, column=column, data=inline_data(frame))


def one_below_another(frame: pd.DataFrame, draw: Callable[[pd.DataFrame], Chart]) -> Chart:
    """Return a chart for each panel of a table, titled and stacked vertically."""
    charts = [draw(part).properties(title=str(panel)) for panel, part in frame.groupby("panel", sort=False)]
    return charts[0] if len(charts) == 1 else alt.vconcat(*charts)


def independent_scales(chart: Chart, *scales: str) -> Chart:
    """Return the chart with separate scales in every panel."""
    own: Any = dict.fromkeys(scales, "independent")
    return chart.resolve_scale(**own) if isinstance(chart, alt.FacetChart) else chart


def inline_data(frame: pd.DataFrame) -> alt.Data:
    """Return the rows as inline data: altair refuses tables of more than 5,000 rows."""
    return alt.Data(values=json.loads(frame.to_json(orient="records")))


def band_opacity(methods: Sequence[str]) -> float:
    """Return the opacity of interval bands, lower with more methods so that lines stay visible.

    >>> band_opacity(["er"]), round(band_opacity(["m"] * 10), 3)
    (0.16, 0.032)
    """
    return 0.16 if len(methods) <= FEW_BANDS else 0.16 * FEW_BANDS / len(methods)


def line_with_band(
    data: Data,
    methods: Sequence[str],
    x: alt.X,
    y: alt.Y,
    tooltip: Sequence[object],
    *,
    scale: Any = alt.Undefined,
    legend: alt.Legend | None = None,
    point_size: int | None = None,
) -> alt.LayerChart:
    """Return a line per method with a band for its interval, and points if they have a size."""
    base = alt.Chart(data, width=WIDTH, height=HEIGHT).encode(
        x=x, color=alt.Color("method:N", scale=method_scale(methods), legend=legend)
    )
    band = base.mark_area(opacity=band_opacity(methods), clip=True).encode(
        y=alt.Y("low:Q", scale=scale), y2=alt.Y2("high:Q")
    )
    dashes = alt.StrokeDash("method:N", scale=method_scale(methods, dash), legend=legend)
    line = base.mark_line(strokeWidth=2, clip=True).encode(y=y, strokeDash=dashes)
    if point_size is None:
        both: alt.LayerChart = band + line.encode(tooltip=tooltip)
        return both
    points = base.mark_point(filled=True, size=point_size, opacity=1, clip=True).encode(
        y=y, shape=alt.Shape("method:N", scale=method_scale(methods, shape), legend=None), tooltip=tooltip
    )
    layers: alt.LayerChart = band + line + points
    return layers


def curves_of_shares(
    data: object,
    times: Sequence[str],
    methods: Sequence[str],
    name: str,
    span: tuple[float, float],
    legend: alt.Legend | None = None,
    unit: str = "t",
) -> alt.LayerChart:
    """Return curves of a share over named times."""
    x = alt.X("time:N", scale=alt.Scale(domain=list(times), type="point", padding=0.3), axis=time_axis(times, unit))
    scale = alt.Scale(domain=list(span), nice=False, zero=False)
    y = alt.Y("value:Q", scale=scale, axis=alt.Axis(title=name, format=".0%", tickCount=5))
    tooltip = [alt.Tooltip("method:N"), *estimate_tooltips(name, ("time", unit))]
    size = max(8, 400 // max(1, len(times)))
    chart = line_with_band(data, methods, x, y, tooltip, scale=scale, legend=legend, point_size=size)
    return chart.properties(description=f"{name} over time, by method")


def curves_over_images(
    data: object,
    methods: Sequence[str],
    name: str,
    span: tuple[float, float],
    legend: alt.Legend | None = LEGEND,
    labels: str = "format(datum.value, '~g')",
) -> alt.LayerChart:
    """Return curves over the number of images seen; `labels` is the expression of axis labels."""
    scale = alt.Scale(domain=list(span), zero=False)
    x = alt.X("time:Q", axis=alt.Axis(title="images seen", tickCount=5, format=",d"))
    y = alt.Y("value:Q", scale=scale, axis=alt.Axis(title=name, labelExpr=labels, tickCount=5))
    images = alt.Tooltip("time:Q", title="images seen")
    tooltip = ["method:N", images, "value:Q", "low:Q", "high:Q", "n:Q", "seeds:Q"]
    chart = line_with_band(data, methods, x, y, tooltip, scale=scale, legend=legend)
    return chart.properties(description=f"{name} over images seen, by method")


def share_range(series: Series) -> tuple[float, float]:
    """Return the part of 0 to 1 that values and intervals cover; beyond 1 if a ratio is."""
    values = [value for column in ("value", "low", "high") for value in series.values(column)]
    highest = max(values)
    return max(0.0, min(values) - 0.02), min(max(1.0, highest), highest + 0.02)


def value_range(rows: pd.DataFrame) -> tuple[float, float]:
    """Return the range of the values, and of their intervals as far as these do not dwarf the values.

    >>> value_range(pd.DataFrame({"value": [1.0, 3.0], "low": [0.5, -9.0], "high": [1.5, float("nan")]}))
    (0.0, 3.0)
    """
    low, high = float(rows["value"].min()), float(rows["value"].max())
    margin = (high - low) / 2 or abs(low) / 20 or 0.05
    ends = float(np.nanmin(rows[["value", "low"]])), float(np.nanmax(rows[["value", "high"]]))
    return max(ends[0], low - margin), min(ends[1], high + margin)


def time_axis(times: Sequence[str], title: str) -> alt.Axis:
    """Return an axis with as many evenly spaced names as are legible."""
    every = -(-len(times) // MAX_LABELS)
    wide = max((len(name) for name in times[::every]), default=0) * min(len(times), MAX_LABELS) > 44
    angle = -90 if wide and not title.startswith("trained") else 0
    return alt.Axis(title=title, values=list(times[::every]), labelAngle=angle, labelLimit=90, ticks=False, grid=False)


def estimate_tooltips(name: str, *places: tuple[str, str]) -> list[alt.Tooltip]:
    """Return the tooltip of an estimate: its place, value, interval, n and seeds."""
    return [
        *(alt.Tooltip(f"{field}:N", title=title) for field, title in places),
        alt.Tooltip("value:Q", title=name, format=".1%"),
        alt.Tooltip("low:Q", title="95% interval from", format=".1%"),
        alt.Tooltip("high:Q", title="to", format=".1%"),
        alt.Tooltip("interval:N", title="interval over"),
        alt.Tooltip("n:Q", title="test answers per seed", format=","),
        alt.Tooltip("seeds:Q", title="seeds"),
    ]
