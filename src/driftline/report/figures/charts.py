"""Charts as Vega-Lite specs: heat maps over (t, tau), lines over time, and dots where there is one number.

A spec names its data and does not hold them; text and lines take the colour of the page around them, so the same
chart is legible in light, in dark and on paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from driftline.report.analysis.curves import Series

# Okabe and Ito's colours, told apart by colour-blind eyes; black is left to the text, yellow comes late.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#A6761D", "#8C8C8C")
DASHES = ([1, 0], [6, 3], [2, 2], [8, 2, 2, 2])
SHAPES = ("circle", "triangle-up", "square", "diamond")  # for marks, what dashes are for lines
RED, WHITE, BLUE = "#B2182B", "#FFFFFF", "#2166AC"
EMPTY = "rgba(128, 128, 128, 0.22)"  # not evaluated
NEUTRAL = "#A9B2BD"
LABELS = 12  # at most so many names along an axis
SIDE = 340
WIDTH, HEIGHT = 510, 200
FEW_BANDS = 2  # so many intervals may overlap as they are; more are fainter
LEGEND = alt.Legend(title=None, symbolType="stroke", symbolStrokeWidth=2, symbolOpacity=1)


def colour(index: int) -> str:
    """The colour of the method at this place."""
    return COLOURS[index % len(COLOURS)]


def dash(index: int) -> list[int]:
    """The dash pattern that tells methods apart once the colours are used up."""
    return DASHES[index // len(COLOURS) % len(DASHES)]


def shape(index: int) -> str:
    """The shape of its marks: one for each dash, and another one once colours and dashes are used up together.

    >>> shape(0), shape(8), shape(32)
    ('circle', 'triangle-up', 'triangle-up')
    """
    round_, dashed = divmod(index // len(COLOURS), len(DASHES))
    return SHAPES[(dashed + round_) % len(SHAPES)]


def accuracy_map(data: str, times: Sequence[str], domain: tuple[float, float]) -> dict[str, Any]:
    """A(t, tau): the model of t examined at tau; one scale for all methods of a group."""
    return styled(accuracy_chart(alt.NamedData(name=data), times, domain), fill=EMPTY)


def accuracy_chart(data: Any, times: Sequence[str], domain: tuple[float, float]) -> alt.Chart:
    """The same, not yet in the style of a page."""
    return _heat_map(data, times, alt.Scale(domain=list(domain), scheme="viridis"), "A(t, τ)", [])


def transfer_map(data: str, times: Sequence[str], lowest: float, delta: float) -> dict[str, Any]:
    """g(t, tau): white exactly at delta, blue where the model is still valid, red where it is not."""
    return styled(transfer_chart(alt.NamedData(name=data), times, lowest, delta), fill=EMPTY)


def transfer_chart(data: Any, times: Sequence[str], lowest: float, delta: float) -> alt.Chart:
    """The same, not yet in the style of a page."""
    ends = [min(lowest, delta - 0.05), delta, max(1.0, delta + 0.05)]
    scale = alt.Scale(domain=ends, range=[RED, WHITE, BLUE], interpolate="lab")
    return _heat_map(data, times, scale, "g(t, τ)", [delta])


def lines(
    data: str, times: Sequence[str], methods: Sequence[str], name: str, span: tuple[float, float], unit: str = "t"
) -> dict[str, Any]:
    """A metric over time: a line per method, a band for its interval."""
    return styled(trend(alt.NamedData(name=data), times, methods, name, span, unit=unit))


def faint(methods: Sequence[str]) -> float:
    """How opaque a band is: the more there are, the less, or they would hide the lines.

    >>> faint(["er"]), round(faint(["m"] * 10), 3)
    (0.16, 0.032)
    """
    return 0.16 if len(methods) <= FEW_BANDS else 0.16 * FEW_BANDS / len(methods)


def trend(
    data: Any,
    times: Sequence[str],
    methods: Sequence[str],
    name: str,
    span: tuple[float, float],
    legend: alt.Legend | None = None,
    unit: str = "t",
) -> alt.LayerChart:
    """The same, not yet in the style of a page."""
    x = alt.X("time:N", scale=alt.Scale(domain=list(times), type="point", padding=0.3), axis=_axis(times, unit))
    scale = alt.Scale(domain=list(span), nice=False, zero=False)
    y = alt.Y("value:Q", scale=scale, axis=alt.Axis(title=name, format=".0%", tickCount=5))
    colours = alt.Scale(domain=list(methods), range=[colour(k) for k in range(len(methods))])
    dashes = alt.Scale(domain=list(methods), range=[dash(k) for k in range(len(methods))])
    shapes = alt.Scale(domain=list(methods), range=[shape(k) for k in range(len(methods))])
    base = alt.Chart(data, width=WIDTH, height=HEIGHT).encode(
        x=x, color=alt.Color("method:N", scale=colours, legend=legend)
    )
    band = base.mark_area(opacity=faint(methods), clip=True).encode(y=alt.Y("low:Q", scale=scale), y2="high:Q")
    line = base.mark_line(strokeWidth=2, clip=True).encode(
        y=y, strokeDash=alt.StrokeDash("method:N", scale=dashes, legend=legend)
    )
    points = base.mark_point(filled=True, size=max(8, 400 // max(1, len(times))), opacity=1, clip=True).encode(
        y=y,
        shape=alt.Shape("method:N", scale=shapes, legend=None),
        tooltip=[alt.Tooltip("method:N"), *tooltips(name, ("time", unit))],
    )
    together: alt.LayerChart = (band + line + points).properties(description=f"{name} over time, by method")
    return together


def dots(data: str, methods: Sequence[str], order: Sequence[str], name: str, lines: Sequence[str]) -> dict[str, Any]:
    """One number per method with its interval; a dashed line at the methods `lines`, which all are compared with."""
    colours = alt.Scale(domain=list(methods), range=[colour(k) for k in range(len(methods))])
    base = alt.Chart(alt.NamedData(name=data), width=WIDTH, height=alt.Step(20)).encode(
        color=alt.Color("method:N", scale=colours, legend=None), tooltip=[alt.Tooltip("method:N"), *tooltips(name)]
    )
    x = alt.X("value:Q", scale=alt.Scale(zero=False), axis=alt.Axis(title=name, format=".0%", tickCount=6))
    compared = base.transform_filter(alt.FieldOneOfPredicate(field="method", oneOf=list(lines)))
    rows = base.encode(
        y=alt.Y("method:N", sort=list(reversed(order)), axis=alt.Axis(title=None, labelLimit=260, ticks=False))
    )
    layers = [compared.mark_rule(strokeDash=[4, 3], strokeWidth=1.2).encode(x=x)] if set(lines) & set(order) else []
    layers += [
        rows.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q"), x2="high:Q"),
        rows.mark_point(filled=True, size=70, opacity=1).encode(x=x),
    ]
    return styled(alt.layer(*layers).properties(description=f"{name} by method"))


def bars(data: str, times: Sequence[str], unit: str = "period") -> dict[str, Any]:
    """Samples per period or step: those that are shown and those held out."""
    parts = alt.Scale(domain=["shown", "held out"], range=["#7A8CA3", "#C9A227"])
    chart = (
        alt.Chart(alt.NamedData(name=data), width=WIDTH, height=HEIGHT)
        .mark_bar()
        .encode(
            x=alt.X("time:N", scale=alt.Scale(domain=list(times)), axis=_axis(times, unit)),
            y=alt.Y("count:Q", axis=alt.Axis(title="samples", tickCount=5)),
            color=alt.Color("part:N", scale=parts, legend=alt.Legend(title=None, orient="top")),
            tooltip=[alt.Tooltip("time:N", title=unit), "part:N", alt.Tooltip("count:Q", title="samples")],
        )
    )
    return styled(chart.properties(description=f"Samples per {unit}"))


def stacked(data: str, times: Sequence[str], parts: Sequence[str]) -> dict[str, Any]:
    """How many queries of each part a step has, one on top of the other; the first part is grey."""
    return styled(stack(alt.NamedData(name=data), times, parts))


def stack(data: Any, times: Sequence[str], parts: Sequence[str], most: int | None = None) -> alt.Chart:
    """The same, not yet in the style of a page; `most` is where the axis ends, if it is said."""
    scale = alt.Scale(domain=list(parts), range=[NEUTRAL, *(colour(k) for k in range(len(parts) - 1))])
    ends = alt.Undefined if most is None else alt.Scale(domain=[0, most])
    chart: alt.Chart = (
        alt.Chart(data, width=WIDTH, height=HEIGHT, description="Queries of each cluster by step")
        .mark_bar()
        .encode(
            x=alt.X("time:N", scale=alt.Scale(domain=list(times), paddingInner=0.1), axis=_axis(times, "t")),
            y=alt.Y("count:Q", scale=ends, axis=alt.Axis(title="queries", tickCount=5)),
            color=alt.Color("part:N", scale=scale, legend=alt.Legend(title=None, orient="top", columns=6)),
            order=alt.Order("place:Q"),
            tooltip=[
                alt.Tooltip("time:N", title="t"),
                alt.Tooltip("part:N", title="cluster"),
                alt.Tooltip("count:Q", title="queries"),
            ],
        )
    )
    return chart


def pairs(data: str, methods: Sequence[str], values: Sequence[float]) -> dict[str, Any]:
    """How often each two methods answer differently."""
    return styled(squares(alt.NamedData(name=data), methods, values, "different answers"))


def squares(
    data: Any, methods: Sequence[str], values: Sequence[float], name: str, signed: bool = False
) -> alt.LayerChart:
    """A number for each two methods, the row's first, not yet in the style of a page; `values` are all there are."""
    far = max(map(abs, values), default=0.0) or 1.0
    low = -far if signed else min(values, default=0.0)
    colours: dict[str, Any] = {"range": [RED, WHITE, BLUE], "interpolate": "lab"} if signed else {"scheme": "blues"}
    scale = alt.Scale(domain=[low, 0, far] if signed else [low, far], **colours)
    sort = list(methods)
    axis: dict[str, Any] = {"title": None, "ticks": False, "domain": False, "labelLimit": 220}
    side = alt.Step(max(34, 260 // max(1, len(methods))))
    told: list[Any] = ["low:Q", "high:Q", "seeds:Q", alt.Tooltip("n:Q", title="queries or steps per seed", format=",")]
    base = alt.Chart(data, width=side, height=side).encode(
        x=alt.X("other:N", sort=sort, scale=alt.Scale(domain=sort), axis=alt.Axis(**axis, labelAngle=-45)),
        y=alt.Y("method:N", sort=sort, scale=alt.Scale(domain=sort), axis=alt.Axis(**axis)),
        tooltip=["method:N", "other:N", alt.Tooltip("value:Q", title=name, format=".1%"), *told],
    )
    dark = f"abs(datum.value) > {0.7 * far}" if signed else f"datum.value > {(low + far) / 2}"
    cells = base.mark_rect().encode(color=alt.Color("value:Q", scale=scale, legend=None))
    numbers = base.mark_text(fontSize=10).encode(
        text=alt.Text("value:Q", format="+.1%" if signed else ".1%"),
        color=alt.condition(dark, alt.value(WHITE), alt.value("#222222")),
    )
    both: alt.LayerChart = (cells + numbers).properties(description=f"{name} of each two methods")
    return both


def scatter(data: str, stretches: Sequence[str], classes: Sequence[str]) -> dict[str, Any]:
    """Features in two dimensions, a panel per stretch of time: do the classes stay apart?"""
    return styled(scatter_chart(alt.NamedData(name=data), stretches, classes))


def scatter_chart(data: Any, stretches: Sequence[str], classes: Sequence[str]) -> alt.Chart:
    """The same, not yet in the style of a page."""
    colours = alt.Scale(domain=list(classes), range=[colour(k) for k in range(len(classes))])
    shapes = alt.Scale(domain=list(classes), range=[shape(k) for k in range(len(classes))])
    legend = alt.Legend(title="class", orient="top")
    chart: alt.Chart = (
        alt.Chart(data, width=120, height=120, description="Features by stretch of time and class")
        .mark_point(filled=True, size=16, opacity=0.75)
        .encode(
            x=alt.X("x:Q", axis=None),
            y=alt.Y("y:Q", axis=None),
            color=alt.Color("class:N", scale=colours, legend=legend),
            shape=alt.Shape("class:N", scale=shapes, legend=legend),
            tooltip=[alt.Tooltip("stretch:N", title="time"), alt.Tooltip("class:N")],
            facet=alt.Facet("stretch:N", columns=4, sort=list(stretches), title=None),
        )
    )
    return chart


def span(series: Series, room: float = 0.02) -> tuple[float, float]:
    """The part of 0 to 1 that the intervals and values of shares take up."""
    values = [value for column in ("value", "low", "high") for value in series.values(column)]
    return max(0.0, min(values) - room), min(1.0, max(values) + room)


def _heat_map(data: Any, times: Sequence[str], scale: alt.Scale, name: str, ticks: list[float]) -> alt.Chart:
    low, high = scale.domain[0], scale.domain[-1]
    marks = [low, *(ticks or [low + (high - low) * k / 4 for k in (1, 2, 3)]), high]
    length = SIDE * 3 // 4
    legend = alt.Legend(title=name, format=".0%", values=marks, gradientLength=length, labelOverlap=False)
    sort = alt.Scale(domain=list(times), padding=0)
    chart: alt.Chart = (
        alt.Chart(data, width=SIDE, height=SIDE, description=f"{name} by training period t and test period τ")
        .mark_rect()
        .encode(
            x=alt.X("tau:N", scale=sort, axis=_axis(times, "tested at τ")),
            y=alt.Y("time:N", scale=sort, axis=_axis(times, "trained at t")),
            color=alt.Color("value:Q", scale=scale, legend=legend),
            tooltip=tooltips(name, ("time", "trained at t"), ("tau", "tested at τ")),
        )
    )
    return chart


def _axis(times: Sequence[str], title: str) -> alt.Axis:
    """An axis with as many names as can be read, evenly spread."""
    every = -(-len(times) // LABELS)
    wide = max((len(name) for name in times[::every]), default=0) * min(len(times), LABELS) > 44
    angle = -90 if wide and not title.startswith("trained") else 0
    return alt.Axis(title=title, values=list(times[::every]), labelAngle=angle, labelLimit=90, ticks=False, grid=False)


def tooltips(name: str, *places: tuple[str, str], share: bool = True) -> list[alt.Tooltip]:
    """What pointing at a mark tells: its place, and the number with all that is needed to believe it."""
    form = ".1%" if share else ".3~f"
    return [
        *(alt.Tooltip(f"{field}:N", title=title) for field, title in places),
        alt.Tooltip("value:Q", title=name, format=form),
        alt.Tooltip("low:Q", title="95% interval from", format=form),
        alt.Tooltip("high:Q", title="to", format=form),
        alt.Tooltip("interval:N", title="interval over"),
        alt.Tooltip("n:Q", title="test answers per seed", format=","),
        alt.Tooltip("seeds:Q", title="seeds"),
    ]


def styled(chart: alt.TopLevelMixin, fill: str = "transparent") -> dict[str, Any]:
    """A chart in the style of a page."""
    text = {"labelColor": "currentColor", "titleColor": "currentColor", "labelFontSize": 11, "titleFontSize": 11}
    themed = chart.configure(background="transparent", font="system-ui, sans-serif")
    themed = themed.configure_axis(
        **text, titleFontWeight="normal", domainColor=EMPTY, gridColor=EMPTY, tickColor=EMPTY
    )
    themed = themed.configure_legend(**text, titleFontWeight="normal").configure_view(stroke=None, fill=fill)
    spec: dict[str, Any] = themed.to_dict(validate=False)  # that takes longer than all the rest, and tests draw them
    spec.pop("$schema", None)  # an address that nobody needs to follow
    return spec
