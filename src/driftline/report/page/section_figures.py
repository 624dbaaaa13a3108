"""The charts of a benchmark's page: small multiples over time, two metrics against each other, and compute."""

from __future__ import annotations

from dataclasses import dataclass

from driftline.report.page.answer_charts.scene import Scene
from driftline.report.page.embed import PlacedChart


@dataclass(frozen=True)
class Part:
    """One of several charts side by side."""

    name: str
    chart: PlacedChart


@dataclass(frozen=True)
class SectionFigure:
    """A card with a chart, or with small multiples; its title states the finding."""

    title: str
    axis: str
    parts: tuple[Part, ...]
    source: str
    key: tuple[tuple[str, str], ...] = ()
    half: bool = False


def section_figures(scene: Scene) -> list[SectionFigure]:
    """Return the charts of a group of runs."""
    return []
