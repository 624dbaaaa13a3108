"""Small multiples: a curve per method, each in a chart of its own with the baseline behind it.

Dashed lines are where the stream changes, triangles where the method resets itself. A page has hundreds of these
charts. They are plain Vega-Lite: Altair copies all parts of a chart at every step, which takes most of a report's time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from driftline.metrics import title
from driftline.report.analysis.curves import Series, time_names
from driftline.report.analysis.events import changes, resets
from driftline.report.analysis.groups import Group
from driftline.report.page.embed import PageCharts, PlacedChart
from driftline.report.page.look import FAINT, OLD, named_axis, time_ticks, with_look
from driftline.types import JsonObject, JsonRow

HEIGHT = 130
LONG = 24  # times, from which on a chart can be zoomed
FIELDS = ["time", "at", "value", "low", "high", "n", "seeds"]
PERCENT = ".1%"
QUANTITY: JsonObject = {"type": "quantitative"}
TRIANGLE: JsonObject = {"shape": "triangle-up", "size": 30, "yOffset": -4}
ZOOM: JsonObject = {
    "name": "zoom",
    "select": {"type": "interval", "encodings": ["x"], "zoom": "wheel![event.shiftKey]"},
    "bind": "scales",
}
"""A long stream can be moved, and zoomed by the wheel with Shift, so that the page scrolls."""


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
    domain = max(0.0, min(ends) - 0.02), min(1.0, max(ends) + 0.02)
    plot = _Plot(tuple(times), domain, title(metric))
    data = {method: page.add_data(Series(FIELDS, rows)) for method, rows in by_method.items()}
    marks = plot.events(changes(group), {"type": "rule", "color": FAINT, "strokeDash": [2, 3]})
    placed = []
    for method, name in data.items():
        behind = [plot.baseline(data[baseline])] if baseline in data and method != baseline else []
        color = colors.get(method, OLD)
        triangle = {"type": "point", "clip": True, "color": color, "filled": True, **TRIANGLE}
        returns = plot.events(dict.fromkeys(resets(group, method), "reset"), triangle)
        layers = [*behind, *marks, *plot.curve(color), *returns]
        layers[0] = {**layers[0], "params": [ZOOM]} if len(times) > LONG else layers[0]
        spec = {"data": {"name": name}, "layer": layers, "width": "container", "height": HEIGHT}
        about = f"{plot.title} of {method} over time{f', and of {baseline} behind it' if behind else ''}"
        placed.append(page.add_chart(method, with_look(spec, about)))
    return tuple(placed)


@dataclass(frozen=True)
class _Plot:
    """What the charts of a metric share: the times, the scale of shares, and the metric's title."""

    times: tuple[str, ...]
    domain: tuple[float, float]
    title: str

    @cached_property
    def x(self) -> JsonObject:
        axis = named_axis(time_ticks(self.times, self.times)).to_dict(validate=False)
        scale = {"domain": [-0.2, len(self.times) - 0.8], "nice": False}
        return {"field": "at", **QUANTITY, "scale": scale, "axis": axis}

    def y(self, field: str, **axis: object) -> JsonObject:
        """Return the vertical position."""
        scale = {"domain": list(self.domain), "nice": False, "zero": False}
        return {"field": field, **QUANTITY, "scale": scale, **axis}

    @cached_property
    def value(self) -> JsonObject:
        return self.y("value", axis={"title": None, "format": ".0%", "tickCount": 3})

    def baseline(self, data: str) -> JsonObject:
        """Return a thin line."""
        mark = {"type": "line", "color": OLD, "strokeWidth": 1.2, "opacity": 0.7, "clip": True}
        return {"data": {"name": data}, "mark": mark, "encoding": {"x": self.x, "y": self.value}}

    def curve(self, color: str) -> list[JsonObject]:
        """Return a line with its interval and its points."""
        tooltip = [
            {"field": "time", "type": "nominal"},
            {"field": "value", **QUANTITY, "title": self.title, "format": PERCENT},
            {"field": "low", **QUANTITY, "title": "95% interval from", "format": PERCENT},
            {"field": "high", **QUANTITY, "title": "to", "format": PERCENT},
            *({"field": name, **QUANTITY} for name in ("n", "seeds")),
        ]
        drawn: JsonObject = {"color": color, "clip": True}
        parts = (
            ({"type": "area", "opacity": 0.18}, {"y": self.y("low"), "y2": {"field": "high"}}),
            ({"type": "line", "strokeWidth": 2}, {"y": self.value}),
            ({"type": "point", "filled": True, "size": 22, "opacity": 1}, {"y": self.value, "tooltip": tooltip}),
        )
        return [{"mark": {**mark, **drawn}, "encoding": {"x": self.x, **encoding}} for mark, encoding in parts]

    def events(self, events: Mapping[int, str], mark: JsonObject) -> list[JsonObject]:
        """Return marks at numbers of images, where times are such numbers: a time is the end of its window."""
        if not events or not all(name.isdecimal() for name in self.times):
            return []
        at = np.interp(list(events), [0, *map(int, self.times)], range(-1, len(self.times)))
        low, high = self.domain
        rows = [
            {"at": round(float(place), 3), "value": low, "high": high, "event": name, "images": f"{n:,}"}
            for place, (n, name) in zip(at, events.items(), strict=True)
        ]
        named = {"field": "event", "type": "nominal"}, {"field": "images", "type": "nominal", "title": "after images"}
        encoding: JsonObject = {"x": self.x, "y": self.y("value"), "tooltip": list(named)}
        encoding |= {"y2": {"field": "high"}} if mark["type"] == "rule" else {}
        return [{"data": {"values": rows}, "mark": mark, "encoding": encoding}]
