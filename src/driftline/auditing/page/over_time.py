"""The one chart: the model that is never retrained against the recommended policy, or logged predictions, over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import altair as alt
import numpy as np

from driftline.auditing.estimate import Estimate
from driftline.auditing.log_quality import step_period
from driftline.auditing.page.view import View
from driftline.auditing.replay import NEVER
from driftline.auditing.summary import compared_policy
from driftline.auditing.wording import time_text
from driftline.report.analysis.curves import Series
from driftline.report.page.embed import PageCharts, PlacedChart
from driftline.report.page.labels import EndLabel, end_labels
from driftline.report.page.look import FAINT, NEW, NEW_SOFT, OLD, PAPER, REST, SOFT, look, named_axis

HEIGHT = 320
LABELS = 128  # pixels right of the lines for their names, where the chart is wide enough
WIDE = 500
MAX_MARKS = 3


class Point(NamedTuple):
    """A score at a place on the axis of time."""

    method: str
    at: float
    time: str
    value: float | None
    score: str
    n: int | None


@dataclass(frozen=True)
class Mark:
    """A dashed line at a point in time, with words."""

    at: float
    text: str
    color: str


def behind_since(view: View) -> int | None:
    """Return the first period in which the model that is never retrained is clearly behind the compared policy.

    Clearly: their intervals do not overlap.
    """
    policies = view.result.policies
    assert policies is not None
    never, new = policies[NEVER], compared_policy(policies, view.result.data.deployed)
    sign = 1 if view.metric.higher_is_better else -1
    first = len(view.words) - len(never.by_period)
    for k, (a, b) in enumerate(zip(never.by_period, new.by_period, strict=True)):
        if (a.high < b.low) if sign > 0 else (a.low > b.high):
            return first + k
    return None


def model_over_time(view: View, charts: PageCharts, title: str) -> PlacedChart:
    """Draw never retraining against the compared policy, with a new model of each period as circles."""
    policies = view.result.policies
    assert policies is not None
    never, new = policies[NEVER], compared_policy(policies, view.result.data.deployed)
    first = len(view.words) - len(never.by_period)
    old_line, new_line = (_points(view, view.done(r.policy), r.by_period, first) for r in (never, new))
    circles = _fresh(view)
    pairs = [[a.at, a.value, b.value] for a, b in zip(old_line, new_line, strict=True)]
    between = charts.add_data(Series(["at", "old", "new"], pairs))
    span = _span([point.value for point in (*old_line, *new_line, *circles)])
    x = _x(view)
    ends = [(old_line[-1], OLD), (new_line[-1], NEW), (circles[-1]._replace(method=f"○ {circles[-1].method}"), SOFT)]
    layers = [
        _base(between).mark_area(color=NEW_SOFT, opacity=0.75).encode(x=x, y=_y("old", span), y2="new:Q"),
        *_marks(_change_marks(view), span, len(view.words), x),
        _base(_add(charts, circles))
        .mark_point(size=28, strokeWidth=1.6, stroke=REST, fill=PAPER, filled=True, opacity=1)
        .encode(x=x, y=_y("value", span), tooltip=_tooltip(view)),
        *_line(view, _add(charts, old_line), OLD, span),
        *_line(view, _add(charts, new_line), NEW, span),
        *_end_labels(ends, len(view.words), span),
    ]
    return charts.add_chart(title, look(alt.layer(*layers), title))


def log_over_time(view: View, charts: PageCharts, title: str) -> PlacedChart:
    """Draw logged predictions with their intervals, and the constant answer of the first period."""
    log = view.result.log
    assert log is not None
    line = _points(view, "logged predictions", log.by_period, 0)
    bounds = [[k, view.number(e.low), view.number(e.high)] for k, e in enumerate(log.by_period)]
    bands = charts.add_data(Series(["at", "low", "high"], bounds))
    level = view.number(log.baseline.value)
    constant = Point("constant answer", len(view.words) - 1, "", level, view.score(log.baseline), log.baseline.n)
    ends = [value for bound in bounds for value in bound[1:]]
    span, x = _span([point.value for point in line] + ends + [level]), _x(view)
    step = step_period(log) if log.changed else None
    marks = [] if step is None else [Mark(step - 0.5, f"about {view.words[step]}", OLD)]
    layers = [
        _base(bands).mark_area(color=OLD, opacity=0.14).encode(x=x, y=_y("low", span), y2="high:Q"),
        _base(_add(charts, [constant])).mark_rule(color=REST, strokeDash=[2, 3]).encode(y=_y("value", span)),
        *_marks(marks, span, len(view.words), x),
        *_line(view, _add(charts, line), OLD, span),
        *_end_labels([(line[-1], OLD), (constant, SOFT)], len(view.words), span),
    ]
    return charts.add_chart(title, look(alt.layer(*layers), title))


def _add(charts: PageCharts, points: Sequence[Point]) -> str:
    return charts.add_data(Series(list(Point._fields), [list(point) for point in points]))


def _line(view: View, data: str, color: str, span: tuple[float, float]) -> list[alt.Chart]:
    """Return a line, and a tooltip at each of its points."""
    base = _base(data).encode(x=_x(view), y=_y("value", span))
    return [
        base.mark_line(strokeWidth=2.2, strokeJoin="round", color=color),
        base.mark_point(size=90, opacity=0, filled=True).encode(tooltip=_tooltip(view)),
    ]


def _base(data: str) -> alt.Chart:
    return alt.Chart(alt.NamedData(name=data), width="container", height=HEIGHT)


def _points(view: View, label: str, by_period: Sequence[Estimate], first: int) -> list[Point]:
    return [
        Point(label, first + k, view.words[first + k], view.number(e.value), view.score(e), e.n)
        for k, e in enumerate(by_period)
    ]


def _fresh(view: View) -> list[Point]:
    """Return the scores of new models in their own periods."""
    matrix = view.result.matrix
    assert matrix is not None
    values, errors = np.diag(matrix.score), 1.96 * np.diag(matrix.error)
    points = []
    for name, value, error, n in zip(matrix.periods, values, errors, matrix.n, strict=True):
        score = view.score(Estimate(value, value - error, value + error))
        at, number = round(view.names.at(name), 3), view.number(float(value))
        points.append(Point(f"new model, own {view.one}", at, view.word(name), number, score, int(n)))
    return points


def _span(values: Sequence[float | None]) -> tuple[float, float]:
    known = [value for value in values if value is not None]
    low, high = min(known), max(known)
    margin = 0.06 * (high - low) or abs(low) / 20 or 0.5
    return low - margin, high + margin


def _x(view: View) -> alt.X:
    last = len(view.words) - 1
    end = alt.ExprRef(f"width > {WIDE} ? {last} * width / (width - {LABELS}) : {last}.25")
    scale = alt.Scale(domainMin=-0.25, domainMax=end, nice=False, zero=False)
    return alt.X("at:Q", scale=scale, axis=named_axis(view.ticks, view.time_title))


def _y(field: str, span: tuple[float, float]) -> alt.Y:
    scale = alt.Scale(domain=list(span), nice=False, zero=False)
    return alt.Y(f"{field}:Q", scale=scale, axis=alt.Axis(title=None, tickCount=5))


def _tooltip(view: View) -> list[alt.Tooltip]:
    titles = [("method", "model"), ("time", view.one), ("score", view.metric.title), ("n", "answers")]
    return [alt.Tooltip(f"{name}:N", title=title) for name, title in titles]


def _change_marks(view: View) -> list[Mark]:
    """Return the dates of significant changes, and when the old model was first clearly behind."""
    verdict, aging, marks = view.result.verdict, view.result.aging, []
    if verdict is not None and aging is not None and verdict.aged and verdict.shape is not None:
        for cut, date in zip(verdict.shape.cuts, verdict.dates, strict=True):
            at = view.names.at(aging.periods[cut.period]) - (0 if cut.inside else 0.5 / aging.pieces)
            marks.append(Mark(at, f"change {time_text(date.at)}", FAINT))
    since = behind_since(view)
    if since is not None and verdict is not None and (verdict.aged or verdict.miscalibrated):
        marks.append(Mark(since, f"clearly behind {view.names.within(view.names.names[since])}", OLD))
    return sorted(marks, key=lambda mark: mark.at)[-MAX_MARKS:]


def _marks(marks: Sequence[Mark], span: tuple[float, float], count: int, x: alt.X) -> list[alt.Chart]:
    """Return dashed lines with their words above the plot, each on a line of its own, as a phone is narrow."""
    layers = []
    for row, mark in enumerate(marks):
        right = mark.at > 0.5 * count
        data = alt.Chart(alt.Data(values=[{"at": mark.at, "value": span[1], "text": mark.text}]), width="container")
        color = SOFT if mark.color == FAINT else mark.color
        layers.append(data.mark_rule(color=mark.color, strokeDash=[3, 3]).encode(x=x))
        layers.append(
            data.mark_text(
                color=color, align="right" if right else "left", baseline="bottom", dy=-4 - 13 * row, fontSize=11
            ).encode(x=x, y=alt.Y("value:Q"), text="text:N")
        )
    return layers


def _end_labels(ends: Sequence[tuple[Point, str]], count: int, span: tuple[float, float]) -> list[alt.Chart]:
    """Return the names of lines at their ends, separated from each other; on a narrow page the key has them."""
    at = max(count - 1.0, *(point.at for point, _ in ends))
    known = sorted((point.value, point.method, color) for point, color in ends if point.value is not None)
    return end_labels([EndLabel(value, text, color, at) for value, text, color in known], span, HEIGHT, WIDE)
