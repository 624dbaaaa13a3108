"""The charts of a benchmark's page: the answer, two metrics against each other, and the cost."""

from __future__ import annotations

from dataclasses import dataclass, replace

from driftline import registry
from driftline.benchmarks.answer import Cost, OldAndNew, Plane
from driftline.report.analysis.pareto import cost_points, primary_column
from driftline.report.format import count_of
from driftline.report.page.answer_charts import cost, plane
from driftline.report.page.answer_charts.draw import draw, key
from driftline.report.page.answer_charts.scene import Scene
from driftline.report.page.embed import PlacedChart
from driftline.report.page.own_and_later import own_and_later
from driftline.types import JsonObject

HEIGHT = 250
PARETO = "pareto"
FEWEST = 3  # methods, for a chart that relates two metrics


@dataclass(frozen=True)
class SectionFigure:
    """A card with a chart; its title states the finding, which the answer above the first chart does."""

    title: str
    axis: str
    charts: tuple[tuple[str, PlacedChart], ...]
    """One chart without a name, or small multiples with a name each."""
    source: str
    half: bool = False
    key: tuple[tuple[str, str], ...] = ()
    """Colors and their meaning, where lines have no labels."""
    narrow_key: tuple[tuple[str, str], ...] = ()
    """The same for windows too narrow for labels."""
    figure: str = ""
    """The registered figure that it shows."""


def section_figures(scene: Scene) -> list[SectionFigure]:
    """Return the charts of a group of runs."""
    tall = replace(scene, height=HEIGHT, max_rows=None)
    first = [_answer(tall, chart)] if (chart := draw(tall)) else []
    others = [figure for figure in (_relation(tall), _cost(tall)) if figure]
    return [*first, *_multiples(tall), *(replace(figure, half=len(others) > 1) for figure in others)]


def _answer(scene: Scene, chart: PlacedChart) -> SectionFigure:
    answer, figure = scene.answer, PARETO if isinstance(scene.answer.chart, Cost) else ""
    return SectionFigure("", answer.axis, (("", chart),), answer.source, narrow_key=key(scene), figure=figure)


def _multiples(scene: Scene) -> list[SectionFigure]:
    """Return models in their own period and later, where a model is tested more than once."""
    if not isinstance(scene.answer.chart, OldAndNew):
        return []
    title, placed = own_and_later(scene)
    key = (("new", "in its own period, held out"), ("old", "the same model later"))
    return [SectionFigure(title, scene.answer.axis, tuple(placed), _source(scene), key=key)] if placed else []


def _relation(scene: Scene) -> SectionFigure | None:
    """Return the two metrics that the benchmark relates, if the answer's chart does not show two metrics."""
    pairs = registry.get("benchmark", scene.table.group.benchmark).related_metrics
    known = {(column.metric, column.stat): column for column in scene.table.columns}
    if isinstance(scene.answer.chart, Plane) or not pairs or not known.keys() >= set(pairs):
        return None
    y, x = (known[pair] for pair in pairs)
    scores = [scene.table.scores(column) for column in (x, y)]
    both = [name for name in scores[0] if name in scores[1]]
    if len(both) < FEWEST:
        return None
    ranked = [name for name in both if name in scene.table.group.ranked] or both
    best = [max(ranked, key={name: found[name].value for name in ranked}.__getitem__) for found in scores]
    title = (
        f"{best[0]} has the highest mean of both metrics"
        if best[0] == best[1]
        else f"Highest mean: {best[1]} in “{y.word}”, {best[0]} in “{x.word}”"
    )
    chart = Plane((x.metric, x.stat), (y.metric, y.stat), f"{x.word}, %")
    return _figure(scene, title, f"{y.name}, %", plane.draw(scene, chart))


def _cost(scene: Scene) -> SectionFigure | None:
    """Return the primary metric against compute, if the answer's chart does not show it."""
    column = primary_column(scene.table)
    if column is None or isinstance(scene.answer.chart, Cost):
        return None
    points = [point for point in cost_points(scene.table, column) if point.gmac > 0]
    front = [point.method for point in points if point.on_front]
    if not front or len(points) < 2:
        return None
    title = f"Not beaten at its cost: {', '.join(front[:3])}{' and others' if len(front) > 3 else ''}"
    made = _figure(scene, title, f"{column.name}, %", cost.draw(scene, Cost((column.metric, column.stat))))
    return replace(made, figure=PARETO) if made else None


def _figure(scene: Scene, title: str, axis: str, spec: JsonObject | None) -> SectionFigure | None:
    if spec is None:
        return None
    return SectionFigure(title, axis, (("", scene.charts.add_chart(title, spec)),), _source(scene))


def _source(scene: Scene) -> str:
    cell = scene.table.cells()[0]
    return f"{count_of(cell.seeds, 'seed')}, 95% intervals. Point at a mark for its numbers."
