"""Small multiples of a timeline: each method's models in their own period, and the same models later."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import altair as alt

from driftline.benchmarks.answer import BySeed, is_gain, is_loss, paired
from driftline.report.analysis.curves import Series, cells_by_method, time_names
from driftline.report.analysis.pareto import primary_column
from driftline.report.analysis.result_table import ResultTable
from driftline.report.analysis.summary import Results
from driftline.report.page.answer_charts.old_and_new import axis_name, since
from driftline.report.page.answer_charts.scene import Scene, Span, base, percent, score_text, tooltips, y_axis
from driftline.report.page.embed import PlacedChart
from driftline.report.page.look import NEW, OLD, look, named_axis, time_ticks
from driftline.types import JsonObject, JsonRow

METHODS = 4
MODELS = 8  # lines per chart
HEIGHT = 150
METRIC = "accuracy"
FIELDS = ["trained", "at", "tested", "value", "score", "n", "seeds"]
TOOLTIP = (("trained", "trained in"), ("tested", "tested in"), ("score", "accuracy"), ("n", "n"), ("seeds", "seeds"))
Grid = Mapping[tuple[str, str], BySeed]


def own_and_later(scene: Scene) -> tuple[str, list[tuple[str, PlacedChart]]]:
    """Return a title that states the largest finding, and a chart for the answer's method and the next ones."""
    cells, times = cells_by_method(scene.table.group, METRIC), time_names(scene.table.group)
    methods = [name for name in scene.order(_best_first(scene.table)) if name in cells][:METHODS]
    rows = {method: list(cells[method].records()) for method in methods}
    if not any(row["time"] != row["tau"] for found in rows.values() for row in found):
        return "", []
    span = Span.around([percent(row["value"]) for found in rows.values() for row in found])
    placed = [
        (method, scene.charts.add_chart(f"{method}: its models in their own period and later", spec))
        for method in methods
        for spec in [_chart(scene, rows[method], times, span, method)]
    ]
    results = Results(scene.table)
    return finding({method: results.grid(METRIC, method) for method in methods}, times), placed


def _best_first(table: ResultTable) -> list[str]:
    scores = table.scores(column) if (column := primary_column(table)) else {}
    return sorted(table.group.methods, key=lambda name: -scores[name].value if name in scores else 0.0)


def finding(grids: Mapping[str, Grid], times: Sequence[str]) -> str:
    """Return when even new models lose, else how far an old one is behind a new one; differences are paired by seed."""
    drops = {}
    for before, now in pairwise(times):
        pairs = [(grid.get((now, now), {}), grid.get((before, before), {})) for grid in grids.values()]
        lost = [paired(new, old) for new, old in pairs if new and old]
        if len(lost) == len(grids) and all(is_loss(one) for one in lost):
            drops[now] = sorted(round(-100 * one.value) for one in lost)
    if drops:
        worst = max(drops, key=lambda now: drops[now][0])
        low, high = drops[worst][0], drops[worst][-1]
        size = f"{low}" if low == high else f"{low} to {high}"
        return f"In {since(worst)} even new models lose {size} points: the data got harder"
    gaps = {
        (method, t, tau): gap.value
        for method, grid in grids.items()
        for (t, tau), old in grid.items()
        if t != tau and (tau, tau) in grid and is_gain(gap := paired(grid[tau, tau], old))
    }
    if not gaps:
        return "No older model is behind a new one for certain"
    method, t, tau = max(gaps, key=lambda key: gaps[key])
    return f"{method} of {since(t)} is {100 * gaps[method, t, tau]:.0f} points behind a new model of {since(tau)}"


def _chart(scene: Scene, cells: list[JsonObject], times: Sequence[str], span: Span, method: str) -> JsonObject:
    place = {name: at for at, name in enumerate(times)}
    starts = [time for time in times if any(row["time"] == time != row["tau"] for row in cells)]
    drawn = set(starts[:: -(-len(starts) // MODELS)] if starts else [])
    rows: dict[str, list[JsonRow]] = {"own": [], "later": []}
    for row in cells:
        score = score_text(row["value"], row["low"], row["high"])
        point = [row["time"], place[row["tau"]], row["tau"], percent(row["value"]), score, row["n"], row["seeds"]]
        rows["own"] += [point] if row["time"] == row["tau"] else []
        rows["later"] += [point] if row["time"] in drawn else []
    x = alt.X(
        "at:Q",
        scale=alt.Scale(domain=[-0.2, len(times) - 0.8], nice=False),
        axis=named_axis(time_ticks(times, times), axis_name(times)),
    )
    layers = []
    for line, color, width in (("later", OLD, 1.2), ("own", NEW, 2.2)):
        plot = base(scene.charts.add_data(Series(FIELDS, rows[line])), HEIGHT).encode(x=x, y=y_axis("value", span))
        by_model = plot.encode(detail=alt.Detail("trained:N")) if line == "later" else plot
        layers += [
            by_model.mark_line(color=color, strokeWidth=width),
            plot.mark_point(color=color, filled=True, opacity=1, size=18 * width).encode(tooltip=tooltips(*TOOLTIP)),
        ]
    return look(alt.layer(*layers), f"{METRIC} of {method} in its own period and later")
