"""A benchmark's page: the results of one group of comparable runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from driftline.benchmarks.answer import Answer
from driftline.report.analysis.cards import MethodCards, cards, data_notes, departures
from driftline.report.analysis.groups import Group
from driftline.report.analysis.result_table import ResultTable
from driftline.report.analysis.run_command import run_command
from driftline.report.analysis.summary import front_answer
from driftline.report.analysis.trivial_baseline import not_above
from driftline.report.figures.palette import SHAPES, Style
from driftline.report.format import count_of
from driftline.report.page.answer_charts.scene import Scene, role_color
from driftline.report.page.embed import PageCharts
from driftline.report.page.panels import Panel, panels
from driftline.report.page.paper_figures import PrintedFigure, paper_figures
from driftline.report.page.published import PublishedFigures, published_figures
from driftline.report.page.results import PageTable, page_table
from driftline.report.page.section_figures import SectionFigure, section_figures
from driftline.report.tables.captions import caption, formulas, notes

UNANSWERED = "These runs have no scores for the headline metrics."


@dataclass(frozen=True)
class Section:
    """The content of the template for a group of runs."""

    anchor: str
    title: str
    benchmark: str
    data: str
    size: str
    question: str
    answer: Answer | None
    paper: str
    table: ResultTable
    caption: str
    notes: list[str]
    cautions: list[str]
    formulas: list[tuple[str, str]]
    figures: list[SectionFigure]
    results: PageTable
    published: PublishedFigures | None
    panels: list[Panel]
    paper_figures: list[PrintedFigure]
    commands: list[tuple[str, str]]
    departures: list[str]
    data_notes: list[str]
    shared_card: str
    cards: list[MethodCards]
    in_matrix: bool
    """Whether its runs belong to a matrix of methods and benchmarks."""

    @property
    def text(self) -> str:
        """The answer in words."""
        return self.answer.text if self.answer else UNANSWERED


def build(
    table: ResultTable, place: int, charts: PageCharts, settings: Mapping[str, str], *, in_matrix: bool
) -> Section:
    """Return the section of a group; `place` is its index on the page, `settings` are not in the names of methods."""
    group, card = table.group, table.group.card
    shared_card, by_method = cards(group)
    answer = front_answer(table)
    colors = role_color(table, answer)
    charts.styles = {method: Style(color, (1, 0), SHAPES[0]) for method, color in colors.items()}
    results = page_table(table, colors)
    figures = section_figures(Scene(table, answer, charts, colors)) if answer else []
    folded = panels(table, charts)
    shown = {figure.figure for figure in figures} | {name for panel in folded for name in panel.figures}
    return Section(
        anchor=f"group-{place}",
        title=group.title,
        benchmark=group.benchmark,
        data=" · ".join(part for part in group.title.split(" · ")[1:] if "=" not in part),
        size=size(group),
        question=card.question,
        answer=answer,
        paper=card.paper,
        table=table,
        caption=caption(table),
        notes=[*notes(table), *(f"{name}: {values}." for name, values in settings.items())],
        cautions=not_above(table),
        formulas=formulas(table),
        figures=figures,
        results=results,
        published=published_figures(table, charts, list(dict.fromkeys(settings.values()))),
        panels=folded,
        paper_figures=paper_figures(group, charts, shown),
        commands=commands(group),
        departures=departures(group),
        data_notes=data_notes(group),
        shared_card=shared_card,
        cards=by_method,
        in_matrix=in_matrix,
    )


def size(group: Group) -> str:
    """Return the number of methods, seeds and runs of a group."""
    seeds = max(len(group.runs_of(method)) for method in group.methods)
    parts = ((len(group.methods), "method"), (seeds, "seed"), (len(group.runs), "run"))
    return " · ".join(count_of(count, noun) for count, noun in parts)


def commands(group: Group) -> list[tuple[str, str]]:
    """Return what computes the runs of each method, and what prints the table."""
    runs = {method: max(group.runs_of(method), key=lambda run: run.seed) for method in group.methods}
    made = [(method, run_command(run)) for method, run in runs.items()]
    return [*made, ("table", "driftline table --format latex")]
