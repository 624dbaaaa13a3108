"""What the charts of an answer share: the group of runs, the colors of its methods, and numbers on axes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import altair as alt

from driftline.benchmarks.answer import SPACE, Answer
from driftline.report.analysis.result_table import ResultTable
from driftline.report.page.embed import PageCharts
from driftline.report.page.labels import Spot, place_labels
from driftline.report.page.look import NEW, OLD, REST, SOFT
from driftline.types import JsonObject

NOMINAL, NARROW = 420, 270  # inner width of a chart on a card, and on a phone
WIDE = 330  # from here on labels are right of lines
SOFT_OPACITY = 0.3  # of intervals


@dataclass(frozen=True)
class Scene:
    """An answer, its results, and the page that its chart is on."""

    table: ResultTable
    answer: Answer
    charts: PageCharts
    colors: Mapping[str, str]
    """Color of each method."""
    height: int = 226
    max_rows: int | None = 9
    """How many methods a chart with a row for each shows at most."""

    @property
    def reference(self) -> str | None:
        return self.table.group.baseline

    def color(self, method: str) -> str:
        return self.colors.get(method, REST)

    def text_color(self, method: str) -> str:
        """Return the color of a method's name: gray marks have darker names."""
        return SOFT if self.color(method) == REST else self.color(method)

    def weight(self, method: str) -> int:
        return 600 if method in (self.answer.method, self.reference) else 400

    def order(self, methods: Sequence[str]) -> list[str]:
        """Return methods with the answer first, then the reference, as labels are placed."""
        first = [name for name in (self.answer.method, self.reference) if name is not None and name in methods]
        return [*first, *(name for name in methods if name not in first)]


def percent(value: float | None) -> float | None:
    """Return a share on an axis of percent."""
    return None if value is None or math.isnan(value) else round(100 * value, 2)


def score_text(value: float | None, low: float | None, high: float | None) -> str:
    """Return a value in percent with its interval, for a tooltip."""
    if value is None:
        return "–"
    ends = "" if low is None or high is None or math.isnan(low) else f" [{100 * low:.1f},{SPACE}{100 * high:.1f}]"
    return f"{100 * value:.1f}%{ends}"


def role_color(table: ResultTable, answer: Answer | None) -> dict[str, str]:
    """Return the color of each method: blue is the answer, orange stands still, gray is everything else."""
    colors = dict.fromkeys(table.group.methods, REST)
    if answer is not None and answer.method in colors:
        colors[answer.method] = NEW
    if table.group.baseline:
        colors[table.group.baseline] = OLD
    return colors


def tooltips(*fields: tuple[str, str]) -> list[alt.Tooltip]:
    """Return a tooltip of named fields."""
    return [alt.Tooltip(f"{name}:N", title=title) for name, title in fields]


def base(data: str, height: int) -> alt.Chart:
    """Return a chart of named data that fills the width of its place."""
    return alt.Chart(alt.NamedData(name=data), width="container", height=height)


Line = tuple[tuple[float, float], tuple[float, float]]
"""The two ends of a horizontal or vertical line."""


def point_labels(
    scene: Scene, points: Mapping[str, tuple[float, float]], x: Span, y: Span, lines: Sequence[Line] = ()
) -> list[JsonObject]:
    """Return names beside points and off lines: placed for the width of a card, and for that of a phone.

    They are specs for the layers of a finished chart: Altair would take a second for them.
    """
    layers: list[JsonObject] = []
    order = [name for name in scene.order(list(points)) if name in points]
    for nominal, shown in ((NOMINAL, f"width > {WIDE} ? 1 : 0"), (NARROW, f"width > {WIDE} ? 0 : 1")):
        spots = [
            Spot(x.pixel(points[name][0], nominal), y.pixel(points[name][1], scene.height), name) for name in order
        ]
        ends = [[(x.pixel(a, nominal), y.pixel(b, scene.height)) for a, b in sorted(line)] for line in lines]
        boxes = [(low[0] - 2, low[1] - 2, high[0] + 2, high[1] + 2) for low, high in ends]
        for name, label in place_labels(spots, nominal + 20, scene.height, boxes).items():
            row = {"x": points[name][0], "y": points[name][1], "text": name}
            mark = {"type": "text", "align": label.align, "dx": label.dx, "dy": label.dy, "baseline": "middle"}
            mark |= {"color": scene.text_color(name), "fontWeight": scene.weight(name), "opacity": {"expr": shown}}
            encoding = {field: {"field": field, "type": "quantitative"} for field in ("x", "y")}
            encoding["text"] = {"field": "text", "type": "nominal"}
            layers.append({"data": {"values": [row]}, "mark": mark, "encoding": encoding})
    return layers


@dataclass(frozen=True)
class Span:
    """The range of an axis, linear or logarithmic."""

    low: float
    high: float
    log: bool = False

    @classmethod
    def around(cls, values: Sequence[float | None]) -> Span:
        """Return a range with round ends around percentages.

        >>> Span.around([61.0, 93.0])
        Span(low=60, high=100.0, log=False)
        """
        known = [value for value in values if value is not None]
        low, high = min(known), max(known)
        step = 25 if high - low > 45 else 10 if high - low > 12 else 5
        ends = step * math.floor((low - 0.5) / step), step * math.ceil((high + 0.5) / step)
        return cls(max(0.0, ends[0]), min(100.0, ends[1]))

    def pixel(self, value: float, size: float) -> float:
        """Return the place of a value on an axis of this size."""
        if self.log:
            return size * math.log(value / self.low) / math.log(self.high / self.low)
        return size * (value - self.low) / (self.high - self.low)

    @property
    def scale(self) -> alt.Scale:
        kind: JsonObject = {"type": "log"} if self.log else {"zero": False}
        return alt.Scale(domain=[self.low, self.high], nice=False, **kind)


def y_axis(field: str, span: Span) -> alt.Y:
    """Return an axis whose name is in the line above the chart."""
    return alt.Y(f"{field}:Q", scale=span.scale, axis=alt.Axis(title=None, tickCount=3, format=",.0f"))
