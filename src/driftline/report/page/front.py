"""The front page: per benchmark a card with the question, the answer, one number and the chart that shows it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from driftline import registry
from driftline.benchmarks.answer import Answer
from driftline.report.page.answer_charts.draw import draw, key
from driftline.report.page.answer_charts.scene import Scene, role_color
from driftline.report.page.embed import PageCharts, PlacedChart
from driftline.report.page.section import Section

OTHER_SETTINGS = 6  # listed on a card


@dataclass(frozen=True)
class FrontCard:
    """A benchmark on the front page; `others` are further groups of its runs."""

    anchor: str
    benchmark: str
    data: str
    question: str
    text: str
    answer: Answer | None
    chart: PlacedChart | None
    key: tuple[tuple[str, str], ...]
    """Colors and names of lines, for narrow windows."""
    others: tuple[Section, ...]
    is_wide: bool = False
    """Whether the card takes the whole width, with the text beside the chart."""


def front_cards(sections: Iterable[Section], charts: PageCharts) -> list[FrontCard]:
    """Return a card per benchmark, in the order of benchmarks; no half of a row stays empty."""
    members: dict[str, list[Section]] = {}
    for section in sections:
        members.setdefault(section.table.group.benchmark, []).append(section)
    cards = [_card(found, charts) for found in sorted(members.values(), key=lambda found: position(found[0]))]
    odd = len(cards) % 2 == 0
    return [replace(card, is_wide=k == 0 or (odd and k == len(cards) - 1)) for k, card in enumerate(cards)]


def position(section: Section) -> tuple[int, str]:
    """Return the place of a section's benchmark in the order of the page."""
    return registry.get("benchmark", section.benchmark).place, section.benchmark


def _card(sections: Sequence[Section], charts: PageCharts) -> FrontCard:
    """Return the card of a benchmark: its group with the most runs outside of matrices, then with the most runs."""
    main = max(sections, key=lambda section: (not section.in_matrix, len(section.table.group.runs)))
    others = tuple(section for section in sections if section is not main)
    scene = Scene(main.table, main.answer, charts, role_color(main.table, main.answer)) if main.answer else None
    words = (main.question, main.text, main.answer, draw(scene) if scene else None, key(scene) if scene else ())
    return FrontCard(main.anchor, main.benchmark, main.data, *words, others[:OTHER_SETTINGS])
