"""What accuracy costs: each method's headline number against its compute, and the frontier of those worth it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from driftline.report.analysis.curves import NUMBERS, Series, plain
from driftline.report.analysis.frozen_baseline import STREAM
from driftline.report.analysis.highlights import competes
from driftline.report.analysis.result_table import FINAL, Cell, Column, ResultTable

LEADING = ((FINAL, "mean"), (STREAM, "mean"), ("ood", "mean"))  # what a benchmark's answer is about, if not its first


@dataclass(frozen=True)
class Price:
    """What a method reaches, and for how much compute."""

    method: str
    gmac: float
    cell: Cell
    worth: bool
    """Whether it is on the frontier: no other method is as good for less, or better for as much."""


def headline(table: ResultTable) -> Column | None:
    """The number that stands for accuracy: what the benchmark's answer is about, else its first share."""
    known = {(column.metric, column.stat): column for column in table.columns if _has_cells(table, column)}
    for name in LEADING:
        if name in known:
            return known[name]
    return next((column for column in known.values() if column.share and column.better == "higher"), None)


def prices(table: ResultTable, column: Column) -> list[Price]:
    """The methods whose compute was counted, from the cheapest; the oracle, which is shown more, does not compete."""
    found = [
        (row.method, row.gmac, cell)
        for row in table.rows
        if row.gmac is not None and (cell := table.cell(row.method, column.metric, column.stat))
    ]
    fair = [(gmac, cell.value) for method, gmac, cell in found if competes(method)]
    made = [
        Price(method, gmac, cell, competes(method) and not dominated((gmac, cell.value), fair))
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


def _has_cells(table: ResultTable, column: Column) -> bool:
    return any(table.cell(row.method, column.metric, column.stat) for row in table.rows)
