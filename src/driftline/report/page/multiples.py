"""Small multiples: a curve per method, each in a chart of its own with the baseline behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from driftline.metrics import title
from driftline.report.analysis.curves import Series
from driftline.report.page.embed import PageCharts, PlacedChart
from driftline.report.page.look import OLD, look, named_axis, time_ticks
from driftline.types import JsonObject, JsonRow

HEIGHT = 130
LONG = 24  # times, from which on a chart can be zoomed
FIELDS = ["time", "at", "value", "low", "high", "n", "seeds"]
PERCENT = ".1%"


def multiples(
    series: Series, metric: str, times: Sequence[str], colors: Mapping[str, str], baseline: str | None, page: PageCharts
) -> tuple[PlacedChart, ...]:
    """Return a chart per method of a share over time, all on one scale."""
    by_method: dict[str, list[JsonRow]] = {}
    place = {name: at for at, name in enumerate(times)}
    for row in series.records():
        point = [row["time"], place[str(row["time"])], *(row[name] for name in FIELDS[2:])]
        by_method.setdefault(row["method"], []).append(point)
    ends = [value for column in ("value", "low", "high") for value in series.values(column)]
    scale = alt.Scale(domain=[max(0.0, min(ends) - 0.02), min(1.0, max(ends) + 0.02)], nice=False, zero=False)
    data = {method: page.add_data(Series(FIELDS, rows)) for method, rows in by_method.items()}
    behind = [_line(data[baseline], times, scale, metric, OLD, thin=True)] if baseline in data else []
    placed = []
    for method, name in data.items():
        own = _line(name, times, scale, metric, colors.get(method, OLD), thin=False)
        layers = [*(behind if method != baseline else []), own]
        placed.append(page.add_chart(method, _spec(layers, f"{title(metric)} of {method} over time", len(times))))
    return tuple(placed)


def _line(data: str, times: Sequence[str], scale: alt.Scale, metric: str, color: str, thin: bool) -> Any:
    x = alt.X(
        "at:Q",
        scale=alt.Scale(domain=[-0.2, len(times) - 0.8], nice=False),
        axis=named_axis(time_ticks(times, times)),
    )
    y = alt.Y("value:Q", scale=scale, axis=alt.Axis(title=None, format=".0%", tickCount=3))
    plot = alt.Chart(alt.NamedData(name=data), width="container", height=HEIGHT).encode(x=x)
    if thin:
        return plot.mark_line(color=color, strokeWidth=1.2, opacity=0.7, clip=True).encode(y=y)
    tooltip = [
        alt.Tooltip("time:N"),
        alt.Tooltip("value:Q", title=title(metric), format=PERCENT),
        alt.Tooltip("low:Q", title="95% interval from", format=PERCENT),
        alt.Tooltip("high:Q", title="to", format=PERCENT),
        *("n:Q", "seeds:Q"),
    ]
    return alt.layer(
        plot.mark_area(color=color, opacity=0.18, clip=True).encode(y=alt.Y("low:Q", scale=scale), y2="high:Q"),
        plot.mark_line(color=color, strokeWidth=2, clip=True).encode(y=y),
        plot.mark_point(color=color, filled=True, size=22, opacity=1, clip=True).encode(y=y, tooltip=tooltip),
    )


def _spec(layers: list[Any], description: str, times: int) -> JsonObject:
    """Return the chart; long streams can be zoomed with the wheel."""
    chart = alt.layer(*layers)
    if times > LONG:
        zoom = alt.selection_interval(bind="scales", encodings=["x"], name="zoom")
        chart = chart.add_params(zoom)
    return look(chart, description)
