"""Two numbers per method, each with its interval: such as errors fixed against knowledge kept."""

from __future__ import annotations

import altair as alt

from driftline.benchmarks.answer import Plane
from driftline.report.analysis.curves import Series
from driftline.report.page.answer_charts.scene import (
    SOFT_OPACITY,
    Scene,
    Span,
    base,
    percent,
    point_labels,
    score_text,
    tooltips,
    y_axis,
)
from driftline.report.page.look import look
from driftline.types import JsonObject, JsonRow

FIELDS = ["method", "x", "x_low", "x_high", "y", "y_low", "y_high", "x_score", "y_score", "n", "seeds"]


def draw(scene: Scene, chart: Plane) -> JsonObject | None:
    """Return the chart."""
    columns = {(c.metric, c.stat): c for c in scene.table.columns}
    if chart.x not in columns or chart.y not in columns:
        return None
    xs, ys = (scene.table.scores(columns[pair]) for pair in (chart.x, chart.y))
    rows: list[JsonRow] = [
        [
            *(name, *(percent(v) for one in (xs[name], ys[name]) for v in (one.value, one.low, one.high))),
            *(score_text(one.value, one.low, one.high) for one in (xs[name], ys[name])),
            *(ys[name].n, ys[name].seeds),
        ]
        for name in reversed(scene.order([name for name in ys if name in xs]))
    ]
    if not rows:
        return None
    x_span = Span.around([value for row in rows for value in row[1:4]])
    y_span = Span.around([value for row in rows for value in row[4:7]])
    x = alt.X("x:Q", scale=x_span.scale, axis=alt.Axis(title=chart.x_title, grid=False, tickCount=5))
    y = y_axis("y", y_span)
    named = (("x_score", columns[chart.x].word), ("y_score", columns[chart.y].word))
    plot = base(scene.charts.add_data(Series(FIELDS, rows)), scene.height).encode(
        color=scene_colors(scene, [row[0] for row in rows]),
        tooltip=tooltips(("method", "method"), *named, ("n", "n per run"), ("seeds", "seeds")),
    )
    soft: JsonObject = {"strokeWidth": 4, "opacity": SOFT_OPACITY, "strokeCap": "round"}
    bars = [((row[2], row[4]), (row[3], row[4])) for row in rows if row[2] is not None]
    layers = [
        plot.mark_rule(**soft).encode(x=alt.X("x_low:Q", scale=x_span.scale), x2=alt.X2("x_high:Q"), y=y),
        plot.mark_rule(**soft).encode(x=x, y=y_axis("y_low", y_span), y2=alt.Y2("y_high:Q")),
        plot.mark_point(filled=True, opacity=1, size=80).encode(x=x, y=y),
    ]
    spec = look(alt.layer(*layers), scene.answer.text)
    spec["layer"] += point_labels(scene, {row[0]: (row[1], row[4]) for row in rows}, x_span, y_span, bars)
    return spec


def scene_colors(scene: Scene, methods: list[str]) -> alt.Color:
    """Return the color of each method."""
    scale = alt.Scale(domain=methods, range=[scene.color(method) for method in methods])
    return alt.Color("method:N", scale=scale, legend=None)
