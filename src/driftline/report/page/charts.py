"""Charts of the page: Vega-Lite specs that name their data and take text colors from the page.

The same chart is legible in light, in dark and on paper.
"""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from driftline.report.figures import heat_map
from driftline.report.figures.axes import (
    HEIGHT,
    WIDTH,
    curves_over_images,
    time_axis,
)
from driftline.report.figures.composition import stacked_bars
from driftline.report.figures.disagreement import pair_matrix
from driftline.report.figures.projection import scatter
from driftline.types import JsonObject

EMPTY = "rgba(128, 128, 128, 0.22)"  # not evaluated

Spec = JsonObject


def accuracy_map(data: str, times: Sequence[str], domain: tuple[float, float]) -> Spec:
    """Return the heat map of A(t, tau), with one scale for all methods of a group."""
    return page_style(heat_map.accuracy_map(_named(data), times, domain), fill=EMPTY)


def transfer_map(data: str, times: Sequence[str], lowest: float, delta: float) -> Spec:
    """Return the heat map of g(t, tau)."""
    return page_style(heat_map.transfer_map(_named(data), times, lowest, delta), fill=EMPTY)


def lines_over_images(data: str, methods: Sequence[str], name: str, span: tuple[float, float]) -> Spec:
    """Return curves over the number of images seen."""
    return page_style(curves_over_images(_named(data), methods, name, span, legend=None))


def stacked(data: str, times: Sequence[str], clusters: Sequence[str]) -> Spec:
    """Return the number of queries by step and cluster."""
    return page_style(stacked_bars(_named(data), times, clusters))


def pairs(data: str, methods: Sequence[str], values: Sequence[float]) -> Spec:
    """Return how often methods answer differently."""
    return page_style(pair_matrix(_named(data), methods, values, "different answers"))


def projection(data: str, stretches: Sequence[str], classes: Sequence[str]) -> Spec:
    """Return features in two dimensions, a panel per range of time."""
    return page_style(scatter(_named(data), stretches, classes))


def bars(data: str, times: Sequence[str], unit: str = "period") -> Spec:
    """Return the number of training and held-out samples per period or step."""
    parts = alt.Scale(domain=["shown", "held out"], range=["#7A8CA3", "#C9A227"])
    chart = (
        alt.Chart(_named(data), width=WIDTH, height=HEIGHT)
        .mark_bar()
        .encode(
            x=alt.X("time:N", scale=alt.Scale(domain=list(times)), axis=time_axis(times, unit)),
            y=alt.Y("count:Q", axis=alt.Axis(title="samples", tickCount=5)),
            color=alt.Color("part:N", scale=parts, legend=alt.Legend(title=None, orient="top")),
            tooltip=[alt.Tooltip("time:N", title=unit), "part:N", alt.Tooltip("count:Q", title="samples")],
        )
    )
    return page_style(chart.properties(description=f"Samples per {unit}"))


def _named(data: str) -> alt.NamedData:
    return alt.NamedData(name=data)


def page_style(chart: alt.TopLevelMixin, fill: str = "transparent") -> Spec:
    """Return a chart in the style of the page."""
    text = {"labelColor": "currentColor", "titleColor": "currentColor", "labelFontSize": 11, "titleFontSize": 11}
    themed = chart.configure(background="transparent", font="system-ui, sans-serif")
    themed = themed.configure_axis(
        **text, titleFontWeight="normal", domainColor=EMPTY, gridColor=EMPTY, tickColor=EMPTY
    )
    themed = themed.configure_legend(**text, titleFontWeight="normal").configure_view(stroke=None, fill=fill)
    spec: Spec = themed.to_dict(validate=False)  # validation takes longer than everything else
    spec.pop("$schema", None)
    return spec
