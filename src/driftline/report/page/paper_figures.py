"""The papers' figures of a group: those that no other part of the page shows, and the command that prints each."""

from __future__ import annotations

import functools
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from driftline import registry
from driftline.errors import UserError
from driftline.record.run import Record
from driftline.report.analysis.curves import Series
from driftline.report.analysis.groups import Group
from driftline.report.figures.axes import TEXT
from driftline.report.figures.base import draw
from driftline.report.page.charts import page_style
from driftline.report.page.embed import PageCharts, PlacedChart
from driftline.report.page.look import INK
from driftline.types import JsonObject

DIGITS, SMALL = 4, 0.01
NO_ROWS = {"name": "empty"}  # Altair's data of a mark at a given place


@dataclass(frozen=True)
class PrintedFigure:
    """A figure of a group with the command that writes it; it has a chart if no other part of the page shows it."""

    name: str
    summary: str
    command: str
    needs: str
    chart: PlacedChart | None = None


def paper_figures(group: Group, page: PageCharts, shown: Collection[str]) -> list[PrintedFigure]:
    """Return the figures that a group has; neither those in `shown` nor those that need more are drawn."""
    found = []
    for name in registry.names("figure"):
        thing = registry.get("figure", name)
        if isinstance(thing, functools.partial) or (thing.benchmarks and group.benchmark not in thing.benchmarks):
            continue  # a preset is another figure with a setting
        summary = registry.summary("figure", name)
        command = f"driftline figure {name} --benchmark {group.benchmark} -o {name}.pdf"
        if name in shown or thing.needs:
            found.append(PrintedFigure(name, summary, command, thing.needs))
        elif spec := _spec(name, group, page):
            found.append(PrintedFigure(name, summary, command, "", page.add_chart(summary, spec)))
    return found


def _spec(name: str, group: Group, page: PageCharts) -> JsonObject | None:
    """Return the figure that `driftline figure` draws, in the style of the page; None if the group has none."""
    try:
        _, chart = draw(name, Record(group.runs))
    except UserError:
        return None
    made: JsonObject = _for_page(page_style(chart), page)
    return made


def _for_page(part: Any, page: PageCharts) -> Any:
    """Return a chart whose rows are data of the page, and whose text has the page's color."""
    if isinstance(part, list):
        return [_for_page(one, page) for one in part]
    if not isinstance(part, dict):
        return INK if part == TEXT else part
    if isinstance(part.get("values"), list) and part["values"] and isinstance(part["values"][0], dict):
        return {"name": page.add_data(_series(part["values"]))}
    if part == NO_ROWS:
        return {"values": [{}]}  # one mark
    return {key: _for_page(value, page) for key, value in part.items()}


def _series(rows: list[JsonObject]) -> Series:
    """Return rows with the same keys by column, with few digits."""
    columns = list(rows[0])
    return Series(columns, [[_short(row[name]) for name in columns] for row in rows])


def _short(value: object) -> object:
    """Return a number with few digits: shares with three decimals, which become integers in the page."""
    if not isinstance(value, float):
        return value
    return round(value, 3) if SMALL <= abs(value) <= 1 else float(f"{value:.{DIGITS}g}")
