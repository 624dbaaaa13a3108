"""What accuracy costs: each method's headline number against its compute, and the frontier of those worth it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from driftline import registry
from driftline.report.charts import HEIGHT, SHAPES, WIDTH, colour, styled, tooltips
from driftline.report.results import Cell, Column, ResultTable
from driftline.report.series import NUMBERS, Series, plain

WIDE = 20  # from so many times the compute on, the axis is logarithmic
NAMED = 14  # with more methods their names would cover each other
NEUTRAL = "#8C8C8C"


@dataclass(frozen=True)
class Price:
    """What a method reaches, and for how much compute."""

    method: str
    gmac: float
    cell: Cell
    worth: bool
    """Whether it is on the frontier: no other method is as good for less, or better for as much."""


def headline(table: ResultTable) -> Column | None:
    """Return the column of the primary metric, else of the first share."""
    primary = registry.get("benchmark", table.group.card["run"]["benchmark"]).primary_metrics
    known = {(column.metric, column.stat): column for column in table.columns if _has_cells(table, column)}
    for pair in primary:
        if pair in known:
            return known[pair]
    return next((column for column in known.values() if column.share and column.better == "higher"), None)


def prices(table: ResultTable, column: Column) -> list[Price]:
    """The methods whose compute was counted, from the cheapest; the oracle, which is shown more, does not compete."""
    found = [
        (row.method, row.gmac, cell)
        for row in table.rows
        if row.gmac is not None and (cell := table.cell(row.method, column.metric, column.stat))
    ]
    competing = table.group.competing
    fair = [(gmac, cell.value) for method, gmac, cell in found if method in competing]
    made = [
        Price(method, gmac, cell, method in competing and not dominated((gmac, cell.value), fair))
        for method, gmac, cell in found
    ]
    return sorted(made, key=lambda price: (price.gmac, price.cell.value))


def dominated(one: tuple[float, float], others: Sequence[tuple[float, float]]) -> bool:
    """Whether another (cost, value) is at least as good in both and better in one.

    >>> dominated((2.0, 0.5), [(1.0, 0.5)]), dominated((2.0, 0.5), [(2.0, 0.5), (1.0, 0.4), (3.0, 0.9)])
    (True, False)
    """
    cost, value = one
    return any(c <= cost and v >= value and (c, v) != one for c, v in others)


def rows(found: Sequence[Price]) -> Series:
    """The rows of the chart."""
    made = [
        [one.method, float(f"{one.gmac:.4g}"), "yes" if one.worth else "no"]
        + [plain(getattr(one.cell, name)) for name in NUMBERS]
        for one in found
    ]
    return Series(["method", "gmac", "frontier", *NUMBERS], made)


def chart(data: str, methods: Sequence[str], found: Sequence[Price], column: Column) -> dict[str, Any]:
    """A mark per method with its interval, its name where there is room, and the frontier as a line of steps."""
    axis = alt.Axis(title=column.name, tickCount=5, format=".0%" if column.share else "~g")
    y = alt.Y("value:Q", scale=alt.Scale(zero=False, padding=8), axis=axis)
    colours = alt.Scale(domain=list(methods), range=[colour(k) for k in range(len(methods))])
    shapes = alt.Scale(domain=list(methods), range=[SHAPES[0]] * len(methods))
    at = alt.Chart(alt.NamedData(name=data), width=WIDTH, height=HEIGHT * 5 // 4).encode(
        x=_cost([one.gmac for one in found])
    )
    base = at.encode(color=alt.Color("method:N", scale=colours, legend=None))
    layers = [
        at.transform_filter("datum.frontier === 'yes'")
        .mark_line(color=NEUTRAL, strokeWidth=1.5, interpolate="step-after")
        .encode(y=y, order=alt.Order("gmac:Q")),
        base.mark_rule(strokeWidth=1.5).encode(y=alt.Y("low:Q"), y2="high:Q"),
        base.mark_point(filled=True, size=90, opacity=1).encode(
            y=y,
            shape=alt.Shape("method:N", scale=shapes, legend=None),
            tooltip=_told(column),
        ),
    ]
    if len(found) <= NAMED:
        layers.append(
            base.mark_text(align="left", dx=8, dy=-7, fontSize=11, limit=150).encode(y=y, text=alt.Text("method:N"))
        )
    title = f"Compute and {column.name} by method, with the frontier"
    return styled(alt.layer(*layers).properties(description=title))


def _cost(costs: Sequence[float]) -> alt.X:
    """The axis of compute: logarithmic where methods are far apart."""
    wide = min(costs) > 0 and max(costs) > WIDE * min(costs)
    scale = alt.Scale(type="log", nice=False, padding=20) if wide else alt.Scale(zero=False, nice=False, padding=20)
    axis = alt.Axis(title="GMAC per run", tickCount=5, format=",.3~r", labelOverlap=True)
    return alt.X("gmac:Q", scale=scale, axis=axis)


def _told(column: Column) -> list[alt.Tooltip]:
    return [
        alt.Tooltip("method:N"),
        alt.Tooltip("gmac:Q", title="GMAC per run", format=",.4~r"),
        *tooltips(column.name, share=column.share),
        alt.Tooltip("frontier:N", title="on the frontier"),
    ]


def _has_cells(table: ResultTable, column: Column) -> bool:
    return any(table.cell(row.method, column.metric, column.stat) for row in table.rows)
