"""Draw the chart that an answer asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from driftline.benchmarks.answer import AlongStream, Cost, Dots, OldAndNew, Plane
from driftline.report.page.answer_charts import along_stream, cost, dots, old_and_new, plane
from driftline.report.page.answer_charts.scene import Scene
from driftline.report.page.embed import PlacedChart
from driftline.types import JsonObject

KINDS: Mapping[type, Callable[[Scene, Any], JsonObject | None]] = {
    OldAndNew: old_and_new.draw,
    Dots: dots.draw,
    Plane: plane.draw,
    AlongStream: along_stream.draw,
    Cost: cost.draw,
}


def draw(scene: Scene) -> PlacedChart | None:
    """Return the placed chart; where the record lacks what it shows, a chart of the first column."""
    spec = KINDS[type(scene.answer.chart)](scene, scene.answer.chart)
    if spec is None and scene.table.columns:
        column = scene.table.columns[0]
        spec = dots.draw(scene, Dots((column.metric, column.stat)))
    return scene.charts.add_chart(scene.answer.text, spec) if spec else None


def key(scene: Scene) -> tuple[tuple[str, str], ...]:
    """Return the colors and names of lines, for windows too narrow for names at their ends."""
    chart, reference = scene.answer.chart, scene.reference
    if isinstance(chart, OldAndNew):
        return tuple(old_and_new.line_names(scene, chart).items())
    if isinstance(chart, AlongStream):
        return (("new", scene.answer.method), *((("old", reference),) if reference else ()))
    return ()
