"""The charts of a benchmark's page: the answer, two metrics against each other, and the cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from driftline.benchmarks.answer import Cost, Plane
from driftline.report.analysis.pareto import cost_points, primary_column
from driftline.report.analysis.result_table import Column
from driftline.report.page.answer_charts import cost, plane
from driftline.report.page.answer_charts.draw import draw
from driftline.report.page.answer_charts.scene import Scene
from driftline.report.page.embed import PlacedChart
from driftline.types import JsonObject

HEIGHT = 250
FEWEST = 3  # methods, for a chart that relates two metrics


@dataclass(frozen=True)
class SectionFigure:
    """A card with a chart; its title states the finding, which the answer above the first chart does."""

    title: str
    axis: str
    chart: PlacedChart
    source: str
    half: bool = False


def section_figures(scene: Scene, columns: Sequence[Column]) -> list[SectionFigure]:
    """Return the charts of a group of runs; `columns` are in the order of importance."""
    tall = replace(scene, height=HEIGHT)
    chart, answer = draw(tall), scene.answer
    first = [SectionFigure("", answer.axis, chart, answer.source)] if chart else []
    others = [figure for figure in (_relation(tall, columns), _cost(tall)) if figure]
    return [*first, *(replace(figure, half=len(others) > 1) for figure in others)]


def _relation(scene: Scene, columns: Sequence[Column]) -> SectionFigure | None:
    """Return the two most important shares against each other, if the answer's chart does not show two metrics."""
    shares = [column for column in columns if column.share and column.better == "higher"]
    if isinstance(scene.answer.chart, Plane) or len(shares) < 2:
        return None
    y, x = shares[:2]
    scores = [scene.table.scores(column) for column in (x, y)]
    both = [name for name in scores[0] if name in scores[1]]
    if len(both) < FEWEST:
        return None
    ranked = [name for name in both if name in scene.table.group.ranked] or both
    best = [max(ranked, key={name: found[name].value for name in ranked}.__getitem__) for found in scores]
    title = (
        f"{best[0]} has the highest mean of both metrics"
        if best[0] == best[1]
        else f"{best[1]} is highest in {y.word}, {best[0]} in {x.word}"
    )
    chart = Plane((x.metric, x.stat), (y.metric, y.stat), f"{x.word}, %")
    return _figure(scene, title, f"{y.name}, %", plane.draw(scene, chart))


def _cost(scene: Scene) -> SectionFigure | None:
    """Return the primary metric against compute, if the answer's chart does not show it."""
    column = primary_column(scene.table)
    if column is None or isinstance(scene.answer.chart, Cost):
        return None
    front = [point.method for point in cost_points(scene.table, column) if point.on_front and point.gmac > 0]
    if not front:
        return None
    title = f"Not beaten at its cost: {', '.join(front[:3])}{' and others' if len(front) > 3 else ''}"
    return _figure(scene, title, f"{column.name}, %", cost.draw(scene, Cost((column.metric, column.stat))))


def _figure(scene: Scene, title: str, axis: str, spec: JsonObject | None) -> SectionFigure | None:
    if spec is None:
        return None
    cell = scene.table.cells()[0]
    source = f"{cell.seeds} seed{'' if cell.seeds == 1 else 's'}, 95% intervals. Point at a mark for its numbers."
    return SectionFigure(title, axis, scene.charts.add_chart(title, spec), source)
