"""A metric along the stream: the best method against the baseline, with the gain filled in; others are gray."""

from __future__ import annotations

import re

import altair as alt

from driftline.benchmarks.answer import AlongStream
from driftline.report.analysis.curves import Series, curve, time_unit
from driftline.report.analysis.events import changes, resets
from driftline.report.page.answer_charts.scene import (
    NOMINAL,
    WIDE,
    Scene,
    Span,
    base,
    percent,
    score_text,
    tooltips,
    y_axis,
)
from driftline.report.page.labels import LETTER, EndLabel, end_labels
from driftline.report.page.look import FAINT, NEW_SOFT, REST, SOFT, look
from driftline.types import JsonObject, JsonRow

ROOM = 92  # pixels right of the lines for their names
FIELDS = ["method", "at", "value", "score", "n", "seeds"]
TOOLTIP = (("method", "method"), ("score", "accuracy"), ("at", "until"), ("n", "answers"), ("seeds", "seeds"))
MAX_EVENTS = 60  # more would cover the lines


def draw(scene: Scene, chart: AlongStream) -> JsonObject | None:
    """Return the chart; None if the metric has no value per time, or times are not numbers."""
    found: dict[str, list[JsonRow]] = {}
    for row in curve(scene.table.group, chart.metric).records():
        if row["value"] is None or not str(row["time"]).isdecimal():
            continue
        text = score_text(row["value"], row["low"], row["high"])
        point = [row["method"], int(row["time"]), percent(row["value"]), text, row["n"], row["seeds"]]
        found.setdefault(row["method"], []).append(point)
    best = scene.answer.method
    if len(found.get(best, [])) < 2:
        return None
    span = Span.around([row[2] for rows in found.values() for row in rows])
    last = max(int(str(row[1])) for rows in found.values() for row in rows)
    end = alt.ExprRef(f"width > {WIDE} ? {last} * width / (width - {ROOM}) : {last}")
    x = alt.X(
        "at:Q",
        scale=alt.Scale(domainMin=0, domainMax=end, nice=False),
        axis=alt.Axis(title=time_unit(scene.table.group), grid=False, tickCount=4, format=",d", titleAnchor="start"),
    )
    order = [name for name in reversed(scene.order(list(found)))]
    lines = [layer for name in order for layer in _line(scene, name, found[name], x, span)]
    shown = [name for name in scene.order(list(found)) if name in (best, scene.reference) or _is_named(scene, name)]
    labels = [EndLabel(found[name][-1][2], name, scene.text_color(name), last) for name in shown]
    ends = end_labels(labels, (span.low, span.high), scene.height, WIDE)
    marks = [*_changes(scene, x, span, last), *_between(scene, found, x, span), *lines, *_resets(scene, x, span)]
    return look(alt.layer(*marks, *ends), scene.answer.text)


def _is_named(scene: Scene, method: str) -> bool:
    """Return whether the answer names a method."""
    return re.search(rf"(?<![\w-]){re.escape(method)}(?![\w-])", scene.answer.text) is not None


def _line(scene: Scene, method: str, rows: list[JsonRow], x: alt.X, span: Span) -> list[alt.Chart]:
    color = scene.color(method)
    thin = color == REST
    plot = base(scene.charts.add_data(Series(FIELDS, rows)), scene.height).encode(x=x, y=y_axis("value", span))
    return [
        plot.mark_line(color=color, strokeWidth=1.2 if thin else 2.2, opacity=0.8 if thin else 1, strokeJoin="round"),
        plot.mark_point(size=90, opacity=0, filled=True).encode(tooltip=tooltips(*TOOLTIP)),
    ]


def _between(scene: Scene, found: dict[str, list[JsonRow]], x: alt.X, span: Span) -> list[alt.Chart]:
    """Return the area between the best method and the baseline."""
    if scene.reference not in found:
        return []
    old = {row[1]: row[2] for row in found[scene.reference]}
    rows = [{"at": row[1], "new": row[2], "old": old[row[1]]} for row in found[scene.answer.method] if row[1] in old]
    plot = alt.Chart(alt.Data(values=rows), width="container")
    return [plot.mark_area(color=NEW_SOFT, opacity=0.8).encode(x=x, y=y_axis("old", span), y2=alt.Y2("new:Q"))]


def _changes(scene: Scene, x: alt.X, span: Span, last: int) -> list[alt.Chart]:
    """Return a dashed line where another corruption begins, with its name where there is room for it."""
    found = changes(scene.table.group)
    if not 0 < len(found) <= MAX_EVENTS:
        return []
    ends = dict(zip(found, [*list(found)[1:], last], strict=True))
    pixel = (NOMINAL - ROOM) / last
    rows = [
        {"at": at, "low": span.low, "high": span.high, "text": name}
        | {"word": name if LETTER * len(name) + 6 < (ends[at] - at) * pixel else ""}
        for at, name in found.items()
    ]
    plot = alt.Chart(alt.Data(values=rows), width="container").encode(x=x)
    rule = plot.mark_rule(color=FAINT, strokeDash=[3, 3], strokeWidth=1).encode(
        y=y_axis("low", span), y2=alt.Y2("high:Q"), tooltip=tooltips(("text", "begins"), ("at", "after images"))
    )
    words = plot.mark_text(
        align="left", baseline="top", dx=4, dy=2, color=SOFT, opacity=alt.ExprRef(f"width > {WIDE} ? 1 : 0")
    ).encode(y=y_axis("high", span), text=alt.Text("word:N"))
    return [rule, words]


def _resets(scene: Scene, x: alt.X, span: Span) -> list[alt.Chart]:
    """Return a triangle on the axis where the best method returns to its first state."""
    found = resets(scene.table.group, scene.answer.method)
    if not 0 < len(found) <= MAX_EVENTS:
        return []
    rows = [{"at": at, "low": span.low, "text": f"{scene.answer.method} resets"} for at in found]
    plot = alt.Chart(alt.Data(values=rows), width="container").encode(x=x, y=y_axis("low", span))
    mark = plot.mark_point(shape="triangle-up", filled=True, size=50, opacity=1, color=scene.color(scene.answer.method))
    return [mark.encode(tooltip=tooltips(("text", "event"), ("at", "after images")))]
