"""Policies: score against the number of retrainings, with the best score for each number as a dotted line."""

from __future__ import annotations

from dataclasses import dataclass

import altair as alt

from driftline.auditing.page.view import View
from driftline.auditing.policies import TRIVIAL, PolicyResult
from driftline.auditing.recommendation import Policies
from driftline.auditing.replay import NEVER
from driftline.auditing.summary import cheaper_policy
from driftline.auditing.wording import policy_name, typeset
from driftline.report.analysis.curves import Series
from driftline.report.page.embed import PageCharts, PlacedChart
from driftline.report.page.look import INK, NEW, OLD, REST, SOFT, look

HEIGHT = 330
ROOM = 0.055  # of the height that a label needs
LETTER = 0.019  # of the width of a narrow page
MAX_ROWS = 9  # of the short list
ROLES = {"other": (REST, 50), "never": (OLD, 70), "recommended": (NEW, 150)}  # color and size, the last one on top


def shortlist(policies: Policies) -> list[PolicyResult]:
    """Return the policies of the short list: those that decide and those on the frontier, the best first."""
    cheaper, made = cheaper_policy(policies), policies.recommendation
    kept = {made.policy, made.best, made.knee, NEVER, TRIVIAL, *([cheaper.policy] if cheaper else [])}
    for wanted in (lambda r: r.on_frontier, lambda r: True):
        for result in policies.results:
            if wanted(result) and len(kept) < MAX_ROWS:
                kept.add(result.policy)
    return [result for result in policies.results if result.policy in kept]


def frontier(view: View, charts: PageCharts, title: str) -> PlacedChart:
    """Draw each policy with its interval."""
    policies = view.result.policies
    assert policies is not None
    shown = [r for r in policies.results if r.policy != TRIVIAL]
    rows = [_row(view, policies, r) for r in shown]
    data = charts.add_data(Series(["method", "role", "times", "value", "low", "high", "score", "rows"], rows))
    best = charts.add_data(Series(["times", "value"], _steps(view, shown)))
    most = max(r.retrainings for r in shown)
    x = alt.X(
        "times:Q",
        scale=alt.Scale(domain=[-0.02 * most, max(1.08 * most, 1)], nice=False),
        axis=alt.Axis(title=_axis_title(view), grid=False, tickCount=5, tickMinStep=1, format="d"),
    )
    y = alt.Y("value:Q", scale=alt.Scale(zero=False, padding=14), axis=alt.Axis(title=None, tickCount=5))
    base = alt.Chart(alt.NamedData(name=data), width="container", height=HEIGHT).encode(x=x)
    dotted = alt.Chart(alt.NamedData(name=best), width="container", height=HEIGHT)
    layers = [
        dotted.mark_line(color=REST, strokeDash=[2, 3], interpolate="step-after", strokeWidth=1.2).encode(x=x, y=y),
        *(
            layer
            for role in ROLES
            if any(row[1] == role for row in rows)
            for layer in _points(view, base.transform_filter(f"datum.role === '{role}'"), role, y)
        ),
        *_ring(
            rows,
            policies.recommendation.knee != policies.recommendation.policy,
            _name(view, policies.recommendation.knee),
        ),
        *_labels(view, policies, shown, most),
    ]
    return charts.add_chart(title, look(alt.layer(*layers), title))


def _name(view: View, policy: str) -> str:
    return policy_name(policy, view.unit)


def _role(policies: Policies, policy: str) -> str:
    return "recommended" if policy == policies.recommendation.policy else "never" if policy == NEVER else "other"


def _row(view: View, policies: Policies, r: PolicyResult) -> list[object]:
    ends = [view.number(value) for value in (r.quality.value, r.quality.low, r.quality.high)]
    return [_name(view, r.policy), _role(policies, r.policy), r.retrainings, *ends, view.score(r.quality), r.rows]


def _axis_title(view: View) -> str:
    policies = view.result.policies
    assert policies is not None
    replayed = len(policies[NEVER].by_period)
    return f"retrainings in {replayed} {view.one if replayed == 1 else view.unit}"


def _tooltip(view: View) -> list[alt.Tooltip]:
    return [
        alt.Tooltip("method:N", title="retrain"),
        alt.Tooltip("score:N", title=view.metric.title),
        alt.Tooltip("times:Q", title="retrainings"),
        alt.Tooltip("rows:Q", title="rows trained on", format=","),
    ]


def _steps(view: View, shown: list[PolicyResult]) -> list[list[object]]:
    front = sorted((r for r in shown if r.on_frontier), key=lambda r: r.retrainings)
    steps: list[list[object]] = [[r.retrainings, view.number(r.quality.value)] for r in front]
    return [*steps, [max(r.retrainings for r in shown), steps[-1][1]]]


def _points(view: View, base: alt.Chart, role: str, y: alt.Y) -> list[alt.Chart]:
    color, size = ROLES[role]
    return [
        base.mark_rule(strokeWidth=4, opacity=0.32, strokeCap="round", color=color).encode(
            y=alt.Y("low:Q"), y2="high:Q"
        ),
        base.mark_point(filled=True, opacity=1, color=color, size=size).encode(y=y, tooltip=_tooltip(view)),
    ]


def _ring(rows: list[list[object]], shown: bool, knee: str) -> list[alt.Chart]:
    if not shown:
        return []
    data = alt.Data(values=[{"times": row[2], "value": row[3]} for row in rows if row[0] == knee])
    chart = alt.Chart(data, width="container").mark_point(size=190, stroke=INK, strokeWidth=1.6, opacity=1)
    return [chart.encode(x="times:Q", y="value:Q")]


@dataclass(frozen=True)
class _Label:
    x: float
    y: float
    text: tuple[str, ...]
    color: str
    left: bool

    def covers(self, x: float, y: float) -> bool:
        """Return whether the label would lie over a point."""
        reach = LETTER * max(map(len, self.text))
        beside = 0 < (self.x - x if self.left else x - self.x) < reach
        return beside and 0 < y - self.y < ROOM * len(self.text)


def _labels(view: View, policies: Policies, shown: list[PolicyResult], most: int) -> list[alt.Chart]:
    """Return names beside points: the recommended policy and never first, others where there is room."""
    made = policies.recommendation
    ends = [view.number(value) or 0.0 for r in shown for value in (r.quality.low, r.quality.high)]
    span = (max(ends) - min(ends)) or 1.0
    important = [made.policy, NEVER, made.knee]
    order = sorted(shown, key=lambda r: (important.index(r.policy) if r.policy in important else 9, not r.on_frontier))
    places = [_place(view, r, most, min(ends), span) for r in shown]
    placed: list[_Label] = []
    for r in order:
        x, y = _place(view, r, most, min(ends), span)
        if not (r.on_frontier or r.policy in important):
            continue
        label = _Label(x, y, _label_text(view, policies, r), _color(policies, r.policy), x > 0.45)
        if all(abs(y - other.y) > ROOM * max(len(label.text), len(other.text)) for other in placed) and (
            r.policy in important or not any(label.covers(*place) for place in places)
        ):
            placed.append(label)
    return [_label_chart(label, most, min(ends), span) for label in placed]


def _place(view: View, r: PolicyResult, most: int, low: float, span: float) -> tuple[float, float]:
    """Return the place of a policy, as shares of width and height."""
    return r.retrainings / max(most, 1), ((view.number(r.quality.value) or 0.0) - low) / span


def _label_text(view: View, policies: Policies, r: PolicyResult) -> tuple[str, ...]:
    """Return the lines of a label."""
    name, score = _name(view, r.policy), typeset(view.metric.text(r.quality.value))
    if r.policy == NEVER:
        return (f"never: {score}",)
    if r.policy == policies.recommendation.policy:
        return f"{name}:", score
    return (f"knee: {name}" if r.policy == policies.recommendation.knee else name,)


def _color(policies: Policies, policy: str) -> str:
    return {"recommended": NEW, "never": OLD}.get(_role(policies, policy), SOFT)


def _label_chart(label: _Label, most: int, low: float, span: float) -> alt.Chart:
    row = {"times": label.x * max(most, 1), "value": low + label.y * span, "text": list(label.text)}
    mark = alt.Chart(alt.Data(values=[row]), width="container").mark_text(
        align="right" if label.left else "left",
        dx=-11 if label.left else 11,
        dy=-9 - 13 * (len(label.text) - 1),
        lineHeight=13,
        color=label.color,
        fontWeight=400 if label.color == SOFT else 600,
        limit=260,
    )
    placed: alt.Chart = mark.encode(x="times:Q", y="value:Q", text="text:N")
    return placed
