"""A section of the page: the results of one group of comparable runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from driftline.report.analysis.cards import MethodCards, cards, data_notes, departures
from driftline.report.analysis.result_table import ResultTable
from driftline.report.analysis.summary import answer
from driftline.report.figures.palette import Style, has_duplicates
from driftline.report.page.embed import PageCharts
from driftline.report.page.panels import Panel, panels
from driftline.report.tables.captions import caption, formulas, notes


@dataclass(frozen=True)
class Section:
    """The content of the template for a group of runs."""

    anchor: str
    title: str
    question: str
    answer: str
    paper: str
    table: ResultTable
    caption: str
    notes: list[str]
    formulas: list[tuple[str, str]]
    styles: Mapping[str, Style]
    panels: list[Panel]
    departures: list[str]
    data_notes: list[str]
    shared_card: str
    cards: list[MethodCards]

    @property
    def sample_sizes(self) -> list[int | None]:
        """The n of each column, or None where cells differ and each shows its own."""
        found = []
        for k in range(len(self.table.columns)):
            sizes = {cell.n for row in self.table.rows if (cell := row.cells[k])}
            found.append(sizes.pop() if len(sizes) == 1 else None)
        return found

    @property
    def has_legend(self) -> bool:
        return any(panel.has_methods for panel in self.panels)

    @property
    def has_duplicates(self) -> bool:
        """Whether there are more methods than styles."""
        return has_duplicates(self.styles)


def build(table: ResultTable, place: int, charts: PageCharts) -> Section:
    """Return the section of a group; `place` is its index on the page."""
    group, card = table.group, table.group.card
    shared_card, by_method = cards(group)
    return Section(
        anchor=f"group-{place}",
        title=group.title,
        question=card.question,
        answer=answer(table),
        paper=card.paper,
        table=table,
        caption=caption(table),
        notes=notes(table),
        formulas=formulas(table),
        styles=charts.styles,
        panels=panels(table, charts),
        departures=departures(group),
        data_notes=data_notes(group),
        shared_card=shared_card,
        cards=by_method,
    )
