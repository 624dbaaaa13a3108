"""The look of charts on cards: colors are roles that the page's style sheet defines, for light, dark and print."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import altair as alt

from driftline.types import JsonObject

INK, SOFT, FAINT, GRID, PAPER = "var(--ink)", "var(--soft)", "var(--faint)", "var(--grid)", "var(--paper)"
NEW, NEW_SOFT = "var(--new)", "var(--new-soft)"  # the answer, what is gained
OLD, OLD_SOFT = "var(--old)", "var(--old-soft)"  # what stands still, what was lost
REST = "var(--rest)"  # everything else
FONT = "Inter, system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"
CONFIG: JsonObject = {
    "background": "transparent",
    "font": FONT,
    "padding": {"left": 2, "right": 6, "top": 4, "bottom": 2},
    "view": {"stroke": None},
    "axis": {
        **{"labelColor": SOFT, "titleColor": SOFT, "labelFontSize": 11, "titleFontSize": 11},
        **{"titleFontWeight": "normal", "titlePadding": 8, "labelPadding": 6, "ticks": False},
        **{"domainColor": GRID, "gridColor": GRID, "tickColor": FAINT},
    },
    "axisY": {"domain": False},
    "text": {"font": FONT, "fontSize": 11},
}
MAX_TICKS = 6


def look(chart: alt.TopLevelMixin, description: str) -> JsonObject:
    """Return the spec of a chart that fills the width of its place."""
    spec: JsonObject = chart.to_dict(validate=False)  # validation takes longer than everything else
    spec.pop("$schema", None)
    return with_look(spec, description)


def with_look(spec: JsonObject, description: str) -> JsonObject:
    """Return a spec in the same look."""
    size = {"type": "fit-x", "contains": "padding"}
    return {**spec, "config": CONFIG, "autosize": size, "description": description}


def time_ticks(names: Sequence[str], words: Sequence[str]) -> dict[int, str]:
    """Return the periods that an axis names: of months, the first one and each January; else a few evenly spaced.

    >>> time_ticks(["1996-11", "1996-12", "1997-01", "1997-02"], ["Nov 1996", "Dec 1996", "Jan 1997", "Feb 1997"])
    {0: 'Nov 1996', 2: '1997'}
    >>> time_ticks(["a", "b", "c"], "ABC")
    {0: 'A', 1: 'B', 2: 'C'}
    """
    januaries = {k: name[:4] for k, name in enumerate(names) if re.fullmatch(r"\d{4}-01", name)}
    if januaries and all(re.fullmatch(r"\d{4}-\d\d", name) for name in names) and len(names) > MAX_TICKS // 2:
        wide = {k: year for k, year in januaries.items() if k == 0 or k >= len(names) / 12}
        ticks = {**({} if 0 in wide else {0: words[0]}), **wide}
        if len(ticks) > 1:
            return ticks
    step = max(1, -(-(len(names) - 1) // (MAX_TICKS - 1)))
    return {k: words[k] for k in range(0, len(names), step)}


def named_axis(ticks: Mapping[int, str] | Mapping[float, str], title: str | None = None) -> alt.Axis:
    """Return an axis over positions with a name at some of them."""
    names = ", ".join(f"'{position}': {_quoted(name)}" for position, name in ticks.items())
    return alt.Axis(
        values=list(ticks),
        labelExpr=f"({{{names}}})[datum.value]",
        labelFlush=True,
        labelOverlap="greedy",
        labelSeparation=8,
        grid=False,
        title=title,
    )


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", " ")
    return f"'{escaped}'"
