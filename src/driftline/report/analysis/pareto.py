"""Scores against compute, and the Pareto front."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from driftline import registry
from driftline.report.analysis.result_table import Column, ResultTable, Score


@dataclass(frozen=True)
class CostPoint:
    """A method's score and its compute."""

    method: str
    gmac: float
    score: Score
    on_front: bool
    """No other method is as good for less compute, or better for the same."""


def primary_column(table: ResultTable) -> Column | None:
    """Return the primary metric of the benchmark, else the first share."""
    known = {(column.metric, column.stat): column for column in table.columns if table.scores(column)}
    for pair in registry.get("benchmark", table.group.benchmark).primary_metrics:
        if pair in known:
            return known[pair]
    return next((column for column in known.values() if column.share and column.better == "higher"), None)


def cost_points(table: ResultTable, column: Column) -> list[CostPoint]:
    """Return the methods whose compute was counted, from the cheapest; methods that see more are never on the front."""
    scores = table.scores(column)
    found = [
        (row.method, row.gmac, scores[row.method])
        for row in table.rows
        if row.gmac is not None and row.method in scores
    ]
    ranked = [(gmac, score.value) for method, gmac, score in found if method in table.group.ranked]
    points = [
        CostPoint(method, gmac, score, method in table.group.ranked and not is_dominated((gmac, score.value), ranked))
        for method, gmac, score in found
    ]
    return sorted(points, key=lambda point: (point.gmac, point.score.value))


def is_dominated(point: tuple[float, float], others: Sequence[tuple[float, float]]) -> bool:
    """Return whether another (cost, value) is at least as good in both and better in one.

    >>> is_dominated((2.0, 0.5), [(1.0, 0.5)]), is_dominated((2.0, 0.5), [(2.0, 0.5), (1.0, 0.4), (3.0, 0.9)])
    (True, False)
    """
    cost, value = point
    return any(c <= cost and v >= value and (c, v) != point for c, v in others)
