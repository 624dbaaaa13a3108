"""Charts of the folded parts and of the facts: survival, loss by age, heat maps."""

from __future__ import annotations

import altair as alt
import numpy as np

from driftline.auditing.estimate import Estimate
from driftline.auditing.findings import amount
from driftline.auditing.horizons import Horizon
from driftline.auditing.page.view import View
from driftline.auditing.wording import typeset
from driftline.report.analysis.curves import Series
from driftline.report.page.embed import PageCharts, PlacedChart
from driftline.report.page.look import NEW, OLD, REST, look, named_axis

MAX_CELLS = 48  # rows and columns of a heat map; more periods are averaged
HEIGHT = 220


def survival_chart(view: View, charts: PageCharts, horizon: Horizon, title: str, height: int = 62) -> PlacedChart:
    """Draw the share of models that are still valid, by age."""
    aging = view.result.aging
    assert aging is not None
    matters = aging.verdict.aged and horizon.depends_on_order
    color = OLD if matters else REST
    points = [[0.0, 100.0], *([(k + 1) / aging.pieces, round(100 * s, 1)] for k, s in enumerate(horizon.survival))]
    data = charts.add_data(Series(["age", "value"], points))
    x = alt.X(
        "age:Q",
        scale=alt.Scale(domain=[0, points[-1][0]], nice=False),
        axis=alt.Axis(title=None if height < 100 else f"age in {view.unit}", grid=False, tickCount=4, tickMinStep=1),
    )
    y = alt.Y("value:Q", scale=alt.Scale(domain=[0, 100]), axis=alt.Axis(title=None, values=[0, 50, 100], grid=False))
    base = alt.Chart(alt.NamedData(name=data), width="container", height=height).encode(x=x, y=y)
    tooltip = [
        alt.Tooltip("age:Q", title=f"age in {view.unit}", format=".3~g"),
        alt.Tooltip("value:Q", title="% still valid", format=".0f"),
    ]
    layers = [
        base.mark_area(color=color, opacity=0.16, interpolate="step-after"),
        base.mark_line(color=color, strokeWidth=1.6, interpolate="step-after"),
        base.mark_point(opacity=0, size=60, filled=True).encode(tooltip=tooltip),
    ]
    return charts.add_chart(title, look(alt.layer(*layers), title))


def loss_by_age(view: View, charts: PageCharts, title: str) -> PlacedChart:
    """Draw how far models are behind a new one, by age."""
    aging = view.result.aging
    assert aging is not None
    losses = aging.sizes.loss_by_age[: max(1, len(aging.sizes.loss_by_age) * 2 // 3)]
    rows = [[round((k + 1) / aging.pieces, 3), *_ends(view, e), _text(view, e), e.n] for k, e in enumerate(losses)]
    data = charts.add_data(Series(["age", "value", "low", "high", "score", "n"], rows))
    x = alt.X(
        "age:Q", axis=alt.Axis(title=f"age in {view.unit}", grid=False, tickMinStep=1), scale=alt.Scale(zero=False)
    )
    y = alt.Y("value:Q", axis=alt.Axis(title=None, tickCount=5), scale=alt.Scale(zero=True))
    base = alt.Chart(alt.NamedData(name=data), width="container", height=HEIGHT).encode(x=x)
    tooltip = [
        alt.Tooltip("age:Q", title=f"age in {view.unit}", format=".3~g"),
        alt.Tooltip("score:N", title="behind a new model"),
        alt.Tooltip("n:Q", title="models"),
    ]
    layers = [
        base.mark_area(color=OLD, opacity=0.16).encode(y=alt.Y("low:Q"), y2="high:Q"),
        base.mark_line(color=OLD, strokeWidth=2).encode(y=y),
        base.mark_point(color=OLD, filled=True, size=30, opacity=1).encode(y=y, tooltip=tooltip),
    ]
    return charts.add_chart(title, look(alt.layer(*layers), title))


def _ends(view: View, e: Estimate) -> list[float | None]:
    return [view.number(value) for value in (e.value, e.low, e.high)]


def _text(view: View, e: Estimate) -> str:
    return typeset(amount(view.metric, e))


def heat_maps(view: View, charts: PageCharts) -> list[PlacedChart]:
    """Draw the score of each model in each period, and how far it is behind the period's own model."""
    matrix = view.result.matrix
    assert matrix is not None
    score, names = _averaged(matrix.score, [view.word(name) for name in matrix.periods])
    own = np.diag(score)
    behind = (own - score) if view.metric.higher_is_better else (score - own)
    percent = ", %" if view.factor == 100 else ""
    first = f"{view.metric.title[:1].upper()}{view.metric.title[1:]}{percent}: {_range(view, score)}"
    points = "points behind" if view.factor == 100 else "behind"
    second = f"{points[:1].upper()}{points[1:]} the model of the same {view.one}: up to {view.plain(behind.max())}"
    return [
        charts.add_chart(first, _map(view, charts, score, names, NEW, view.metric.title, first)),
        charts.add_chart(second, _map(view, charts, np.maximum(behind, 0), names, OLD, points, second)),
    ]


def _range(view: View, values: np.ndarray) -> str:
    return f"pale {view.plain(values.min())}, dark {view.plain(values.max())}"


def _averaged(values: np.ndarray, names: list[str]) -> tuple[np.ndarray, list[str]]:
    """Return a matrix of at most 48 rows and columns; blocks of periods are averaged."""
    step = -(-len(values) // MAX_CELLS)
    if step == 1:
        return values, names
    starts = np.arange(0, len(values), step)
    sizes = np.diff([*starts, len(values)])
    sums = np.add.reduceat(np.add.reduceat(values, starts, axis=0), starts, axis=1)
    return sums / np.outer(sizes, sizes), [names[k] for k in starts]


def _map(
    view: View, charts: PageCharts, values: np.ndarray, names: list[str], color: str, what: str, title: str
) -> dict[str, object]:
    size = len(values)
    rows = [[t, tau, names[t], names[tau], view.number(float(values[t, tau]))] for t, tau in np.ndindex(size, size)]
    data = charts.add_data(Series(["t", "tau", "trained", "tested", "value"], rows))
    step = max(1, size // 4)
    axis = named_axis({k: names[k].removeprefix("period ") for k in range(0, size, step)})
    low, high = (view.number(float(edge)) for edge in (values.min(), values.max()))
    scale = alt.Scale(domain=[-0.5, size - 0.5], nice=False, zero=False)
    vertical, across = axis.copy(), axis.copy()
    vertical.title, across.title = "trained in", "tested in"
    chart = (
        alt.Chart(alt.NamedData(name=data), width="container", height=320)
        .transform_calculate(x0="datum.tau - 0.5", x1="datum.tau + 0.5", y0="datum.t - 0.5", y1="datum.t + 0.5")
        .mark_rect(color=color)
        .encode(
            x=alt.X("x0:Q", scale=scale, axis=across),
            x2="x1:Q",
            y=alt.Y("y0:Q", scale=scale.copy(), axis=vertical),
            y2="y1:Q",
            opacity=alt.Opacity("value:Q", scale=alt.Scale(domain=[low, high], range=[0.06, 1]), legend=None),
            tooltip=[
                alt.Tooltip("trained:N", title="trained in"),
                alt.Tooltip("tested:N", title="tested in"),
                alt.Tooltip("value:Q", title=what, format=".4~g"),
            ],
        )
    )
    return look(chart, title)
