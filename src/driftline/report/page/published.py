"""Published numbers next to ours: a dot plot per source."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt

from driftline.report.analysis.curves import Series
from driftline.report.analysis.published import full_scale
from driftline.report.analysis.result_table import Column, ResultTable, Score
from driftline.report.format import count_of
from driftline.report.page.answer_charts.scene import Span, percent, score_text, tooltips
from driftline.report.page.embed import PageCharts, PlacedChart
from driftline.report.page.look import INK, NEW, PAPER, REST, look
from driftline.types import JsonRow

ROW = 25  # pixels
MOST_COLUMNS = 3
FIELDS = ["method", "ours", "low", "high", "printed", "score", "n", "seeds"]


@dataclass(frozen=True)
class PublishedTable:
    """The numbers of one source: a chart per metric, and what differs from the paper in a few words each."""

    title: str
    axis: str
    parts: tuple[tuple[str, PlacedChart], ...]
    chips: tuple[str, ...]


@dataclass(frozen=True)
class PublishedFigures:
    """A title that states the difference, and a dot plot per source."""

    title: str
    tables: tuple[PublishedTable, ...]


Pairs = dict[str, tuple[Score, Score]]
"""Ours and the printed score, by method."""


def published_figures(table: ResultTable, page: PageCharts, changed: Sequence[str]) -> PublishedFigures | None:
    """Return the dot plots of a group; None if nothing was published for it. `changed` are settings that differ."""
    tables, differences = [], []
    for source in dict.fromkeys(row.source for rows in table.published.values() for row in rows):
        found = [
            (column, pairs) for column in table.columns if column.share and (pairs := _pairs(table, source, column))
        ]
        if not found:
            continue
        parts = [(column.name, _place(column, pairs, page)) for column, pairs in found[:MOST_COLUMNS]]
        both = [pair for _, pairs in found for pair in pairs.values()]
        inside = [ours.low <= printed.value <= ours.high for ours, printed in both]
        differences += [ours.value - printed.value for ours, printed in both]
        axis = f"%. {sum(inside)} of {len(inside)} printed means lie inside our intervals."
        tables.append(PublishedTable(source, axis, tuple(parts), _chips(table, changed)))
    if not tables:
        return None
    mean = 100 * math.fsum(differences) / len(differences)
    words = (
        "at the same mean level" if abs(mean) < 0.5 else f"{abs(mean):.1f} points {'higher' if mean > 0 else 'lower'}"
    )
    return PublishedFigures(f"Published next to ours: ours are {words}", tuple(tables))


def _pairs(table: ResultTable, source: str, column: Column) -> Pairs:
    place = table.columns.index(column)
    return {
        row.method: (ours, printed)
        for row in table.rows
        for one in table.published[row.method]
        if one.source == source and (ours := row.cells[place]) and (printed := one.cells[place])
    }


def _place(column: Column, pairs: Pairs, page: PageCharts) -> PlacedChart:
    """Return the chart of a metric, the best printed method first: a hollow diamond is printed, a dot is ours."""
    sign = -1 if column.better == "higher" else 1
    order = sorted(pairs, key=lambda name: sign * pairs[name][1].value)
    rows: list[JsonRow] = [
        [
            *(name, *(percent(v) for v in (ours.value, ours.low, ours.high, printed.value))),
            *(score_text(ours.value, ours.low, ours.high), ours.n, ours.seeds),
        ]
        for name in order
        for ours, printed in [pairs[name]]
    ]
    span = Span.around([value for row in rows for value in row[1:5]])
    plot = alt.Chart(
        alt.NamedData(name=page.add_data(Series(FIELDS, rows))), width="container", height=ROW * len(rows)
    ).encode(
        y=alt.Y("method:N", sort=order, axis=alt.Axis(title=None, labelLimit=120, grid=False)),
        tooltip=tooltips(
            ("method", "method"), ("printed", "printed, %"), ("score", "ours"), ("n", "n per run"), ("seeds", "seeds")
        ),
    )
    axis = alt.Axis(title=None, grid=True, tickCount=4, format=",.0f")
    layers = [
        plot.mark_rule(color=NEW, strokeWidth=6, opacity=0.3, strokeCap="round").encode(
            x=alt.X("low:Q", scale=span.scale, axis=axis), x2=alt.X2("high:Q")
        ),
        plot.mark_rule(color=REST).encode(x=alt.X("ours:Q"), x2=alt.X2("printed:Q")),
        plot.mark_point(color=NEW, filled=True, size=70, opacity=1).encode(x=alt.X("ours:Q")),
        plot.mark_point(shape="diamond", fill=PAPER, stroke=INK, size=90, opacity=1, strokeWidth=1.4).encode(
            x=alt.X("printed:Q")
        ),
    ]
    title = f"{column.name}, printed and ours"
    return page.add_chart(title, look(alt.layer(*layers), title))


def _chips(table: ResultTable, changed: Sequence[str]) -> tuple[str, ...]:
    """Return the scale of our runs and the settings that methods were given."""
    card = table.group.card
    seeds = max(row.seeds for row in table.rows)
    scale = [] if full_scale(card) else ["smaller than the paper's runs", f"network {card.run.model.name}"]
    return (*scale, count_of(seeds, "seed"), *changed)
