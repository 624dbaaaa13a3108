"""Small multiples: a curve per method, each in a chart of its own with the baseline behind it.

Dashed lines are where the stream changes, triangles where the method resets itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np

from driftline.metrics import title
from driftline.report.analysis.curves import Series, time_names
from driftline.report.analysis.events import changes, resets
from driftline.report.analysis.groups import Group
from driftline.report.page.embed import PageCharts, PlacedChart
from driftline.report.page.look import FAINT, OLD, look, named_axis, time_ticks
from driftline.types import JsonObject, JsonRow

HEIGHT = 130
LONG = 24  # times, from which on a chart can be zoomed
FIELDS = ["time", "at", "value", "low", "high", "n", "seeds"]
PERCENT = ".1%"
ZOOM = "wheel![event.shiftKey]"


def multiples(
    series: Series, metric: str, group: Group, colors: Mapping[str, str], page: PageCharts
) -> tuple[PlacedChart, ...]:
    """Return a chart per method of a share over time, all on one scale."""
    times, baseline = time_names(group), group.baseline
    by_method: dict[str, list[JsonRow]] = {}
    place = {name: at for at, name in enumerate(times)}
    for row in series.records():
        point = [row["time"], place[str(row["time"])], *(row[name] for name in FIELDS[2:])]
        by_method.setdefault(row["method"], []).append(point)
    ends = [value for column in ("value", "low", "high") for value in series.values(column)]
    scale = alt.Scale(domain=[max(0.0, min(ends) - 0.02), min(1.0, max(ends) + 0.02)], nice=False, zero=False)
    data = {method: page.add_data(Series(FIELDS, rows)) for method, rows in by_method.items()}
    behind = [_line(data[baseline], times, scale, metric, OLD, thin=True)] if baseline in data else []
    behind += _events(times, scale, changes(group), alt.MarkDef("rule", color=FAINT, strokeDash=[2, 3]))
    placed = []
    for method, name in data.items():
        color = colors.get(method, OLD)
        own = _line(name, times, scale, metric, color, thin=False)
        triangle = alt.MarkDef("point", shape="triangle-up", filled=True, size=30, color=color, yOffset=-4, clip=True)
        returns = _events(times, scale, dict.fromkeys(resets(group, method), "reset"), triangle)
        layers = [*(behind if method != baseline else behind[1:]), own, *returns]
        placed.append(page.add_chart(method, _spec(layers, f"{title(metric)} of {method} over time", len(times))))
    return tuple(placed)


def _events(times: Sequence[str], scale: alt.Scale, events: Mapping[int, str], mark: alt.MarkDef) -> list[Any]:
    """Return marks at numbers of images, where times are such numbers: a time is the end of its window."""
    if not events or not all(name.isdecimal() for name in times):
        return []
    ends = [0, *map(int, times)]
    at: Iterable[float] = np.interp(list(events), ends, range(-1, len(times)))
    rows = [
        {
            "at": round(float(place), 3),
            "value": scale.domain[0],
            "high": scale.domain[1],
            "event": name,
            "images": f"{n:,}",
        }
        for place, (n, name) in zip(at, events.items(), strict=True)
    ]
    plot = alt.Chart(alt.Data(values=rows), width="container", height=HEIGHT)
    tooltip = [alt.Tooltip("event:N"), alt.Tooltip("images:N", title="after images")]
    y2 = {"y2": "high:Q"} if mark.type == "rule" else {}
    plot = plot.encode(x=_x(times), y=alt.Y("value:Q", scale=scale), tooltip=tooltip, **y2)
    plot.mark = mark
    return [plot]


def _x(times: Sequence[str]) -> alt.X:
    scale = alt.Scale(domain=[-0.2, len(times) - 0.8], nice=False)
    return alt.X("at:Q", scale=scale, axis=named_axis(time_ticks(times, times)))


def _line(data: str, times: Sequence[str], scale: alt.Scale, metric: str, color: str, thin: bool) -> Any:
    y = alt.Y("value:Q", scale=scale, axis=alt.Axis(title=None, format=".0%", tickCount=3))
    plot = alt.Chart(alt.NamedData(name=data), width="container", height=HEIGHT).encode(x=_x(times))
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
    """Return the chart; a long stream can be moved, and zoomed by the wheel with Shift, so that the page scrolls."""
    chart = alt.layer(*layers)
    if times > LONG:
        zoom = alt.selection_interval(bind="scales", encodings=["x"], name="zoom", zoom=ZOOM)
        chart = chart.add_params(zoom)
    return look(chart, description)
