"""Methods as dots with their intervals: upper bounds are hollow, a dashed line is at the baseline."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import altair as alt

from driftline.benchmarks.answer import Dots
from driftline.report.analysis.curves import Series
from driftline.report.analysis.result_table import Score
from driftline.report.page.answer_charts.scene import (
    SOFT_OPACITY,
    Scene,
    Span,
    base,
    percent,
    score_text,
    tooltips,
)
from driftline.report.page.look import GRID, NEW, OLD, PAPER, REST, SOFT, look
from driftline.types import JsonObject, JsonRow

ROW = 32  # pixels at least
NARROW_CARD = 400  # pixels, below which methods have short names


def draw(scene: Scene, chart: Dots) -> JsonObject | None:
    """Return the chart: the best method first."""
    table = scene.table
    column = next((c for c in table.columns if (c.metric, c.stat) == chart.column), None)
    scores = table.scores(column) if column else {}
    if column is None or not scores:
        return None
    sign = -1 if column.better == "higher" else 1
    order = sorted(scores, key=lambda name: sign * scores[name].value)
    if scene.max_rows and len(order) > scene.max_rows:
        kept = {*order[: scene.max_rows - 3], *order[-1:], scene.reference, scene.answer.method}
        order = [name for name in order if name in kept]
    factor: Callable[[float], float | None] = percent if column.share else float
    rows: list[JsonRow] = [
        [name, *(factor(v) for v in (s.value, s.low, s.high)), score_text(s.value, s.low, s.high), s.n, s.seeds]
        for name in order
        for s in [scores[name]]
    ]
    data = scene.charts.add_data(Series(["method", "value", "low", "high", "score", "n", "seeds"], rows))
    ends = [value for row in rows for value in row[1:4] if value is not None]
    span = Span(0, 100) if column.share and min(ends) < 40 else Span.around(ends)
    x = alt.X("value:Q", scale=span.scale, axis=alt.Axis(title=None, grid=True, tickCount=5, domain=False))
    y = alt.Y("method:N", sort=order, axis=_names(scene, chart, order))
    plot = base(data, max(scene.height, ROW * len(rows))).encode(
        tooltip=tooltips(("method", "method"), ("score", column.word), ("n", "test answers"), ("seeds", "seeds"))
    )
    color = alt.Color("method:N", scale=alt.Scale(domain=order, range=[scene.color(m) for m in order]), legend=None)
    hollow = [name for name in order if table.group.roles.get(name) == "upper-bound"]
    layers = [
        *_line(scene, scores, x, column.share),
        plot.mark_rule(strokeWidth=6, strokeCap="round", opacity=SOFT_OPACITY).encode(
            x=alt.X("low:Q"), x2=alt.X2("high:Q"), y=y, color=color
        ),
        plot.transform_filter(alt.FieldOneOfPredicate(field="method", oneOf=[m for m in order if m not in hollow]))
        .mark_point(filled=True, size=90, opacity=1)
        .encode(x=x, y=y, color=color),
        plot.transform_filter(alt.FieldOneOfPredicate(field="method", oneOf=hollow))
        .mark_point(size=80, fill=PAPER, stroke=REST, strokeWidth=2, opacity=1)
        .encode(x=x, y=y),
    ]
    return look(alt.layer(*layers), scene.answer.text)


def _line(scene: Scene, scores: Mapping[str, Score], x: alt.X, share: bool) -> list[alt.Chart]:
    """Return a dashed line at the baseline."""
    if scene.reference is None or scene.reference not in scores:
        return []
    value = scores[scene.reference].value
    rows = [{"value": percent(value) if share else value}]
    return [alt.Chart(alt.Data(values=rows)).mark_rule(color=OLD, strokeDash=[4, 3]).encode(x=x)]


def _names(scene: Scene, chart: Dots, order: list[str]) -> alt.Axis:
    names = json.dumps({name: chart.names.get(name, name) for name in order})
    tests = {NEW: scene.answer.method, OLD: scene.reference or ""}
    bold = " || ".join(f"datum.value === {json.dumps(name)}" for name in tests.values() if name) or "false"
    color = [{"test": f"datum.value === {json.dumps(name)}", "value": value} for value, name in tests.items() if name]
    return alt.Axis(
        title=None,
        labelExpr=f"(containerSize()[0] || 500) < {NARROW_CARD} ? datum.value : ({names})[datum.value]",
        labelLimit=210,
        labelColor={"condition": color, "value": SOFT},
        labelFontWeight={"condition": {"test": bold, "value": 600}, "value": 400},
        labelPadding=10,
        grid=False,
        domainColor=GRID,
    )
