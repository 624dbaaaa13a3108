"""A metric against compute on a log axis, with the frontier as a dotted line."""

from __future__ import annotations

from itertools import pairwise

import altair as alt

from driftline.benchmarks.answer import Cost
from driftline.report.analysis.curves import Series
from driftline.report.analysis.pareto import CostPoint, cost_points
from driftline.report.page.answer_charts.plane import scene_colors
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
from driftline.report.page.look import SOFT, look
from driftline.types import JsonObject, JsonRow

FIELDS = ["method", "gmac", "value", "low", "high", "score", "cost", "n", "seeds"]
WIDER = 1.6  # factor of the log axis beyond the first and the last method


def draw(scene: Scene, chart: Cost) -> JsonObject | None:
    """Return the chart; None if no compute was counted, or the metric is not a share."""
    column = next((c for c in scene.table.columns if (c.metric, c.stat) == chart.column), None)
    points = [p for p in (cost_points(scene.table, column) if column else []) if p.gmac > 0]
    if not points or column is None or not column.share:
        return None
    rows: list[JsonRow] = [_row(point) for point in points]
    values = [value for row in rows for value in row[2:5]]
    y_span = Span.around(values)
    x_span = Span(points[0].gmac / WIDER, points[-1].gmac * WIDER, log=True)
    x = alt.X(
        "gmac:Q",
        scale=x_span.scale,
        axis=alt.Axis(
            title="billion multiply-accumulates (log scale)", grid=False, tickCount=4, format=",~g", labelOverlap=True
        ),
    )
    y = y_axis("value", y_span)
    plot = base(scene.charts.add_data(Series(FIELDS, rows)), scene.height).encode(
        x=x,
        color=scene_colors(scene, [row[0] for row in rows]),
        tooltip=tooltips(
            ("method", "method"),
            ("score", column.word),
            ("cost", "GMAC per run"),
            ("n", "n per run"),
            ("seeds", "seeds"),
        ),
    )
    steps = _front(points, x_span, y_span)
    lines = [((a, b), (c, b)) for (a, b), (c, _) in pairwise(steps)]
    layers = [
        *_dotted(steps, x, y_span),
        plot.mark_rule(strokeWidth=4, opacity=SOFT_OPACITY, strokeCap="round").encode(
            y=y_axis("low", y_span), y2=alt.Y2("high:Q")
        ),
        plot.mark_point(filled=True, opacity=1, size=80).encode(y=y),
    ]
    spec = look(alt.layer(*layers), scene.answer.text)
    spec["layer"] += point_labels(scene, {row[0]: (row[1], row[2]) for row in rows}, x_span, y_span, lines)
    return spec


def _row(point: CostPoint) -> JsonRow:
    score, gmac = point.score, float(f"{point.gmac:.4g}")
    ends = [percent(value) for value in (score.value, score.low, score.high)]
    text = score_text(score.value, score.low, score.high)
    return [point.method, gmac, *ends, text, f"{gmac:,.3g}", score.n, score.seeds]


def _front(points: list[CostPoint], x_span: Span, y_span: Span) -> list[tuple[float, float]]:
    """Return the corners of the frontier: the best score for each amount of compute."""
    front = [point for point in points if point.on_front]
    if not front:
        return []
    values = [100 * point.score.value for point in front]
    return [
        (front[0].gmac, y_span.low),
        *((point.gmac, value) for point, value in zip(front, values, strict=True)),
        (x_span.high, values[-1]),
    ]


def _dotted(steps: list[tuple[float, float]], x: alt.X, y_span: Span) -> list[alt.Chart]:
    rows = [{"gmac": gmac, "value": value} for gmac, value in steps]
    line = alt.Chart(alt.Data(values=rows), width="container").mark_line(
        color=SOFT, strokeDash=[2, 3], strokeWidth=1.2, interpolate="step-after"
    )
    return [line.encode(x=x, y=y_axis("value", y_span))] if steps else []
