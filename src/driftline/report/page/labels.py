"""Names at marks: at the ends of lines, and beside points where there is room."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import altair as alt

from driftline.report.page.look import SOFT

LETTER, LINE = 6.2, 14.0  # size of a letter of 11 pixels, with its space
AWAY = 10.0  # from the middle of a mark to its label
PLACES = (
    *(("left", AWAY - 2, -AWAY), ("right", 2 - AWAY, -AWAY), ("left", AWAY - 2, AWAY), ("right", 2 - AWAY, AWAY)),
    *(("left", AWAY, 0.0), ("right", -AWAY, 0.0), ("center", 0.0, -AWAY - 4), ("center", 0.0, AWAY + 4)),
)
"""Sides of a mark: alignment of the name and its distance."""
Box = tuple[float, float, float, float]
"""Left, low, right and high in pixels."""


@dataclass(frozen=True)
class EndLabel:
    """The name of a line, at the height of its end."""

    value: float
    text: str
    color: str
    at: float


def end_labels(labels: Sequence[EndLabel], span: tuple[float, float], height: float, wide: float) -> list[alt.Chart]:
    """Return names right of the ends of lines, apart from each other, where the chart is wider than `wide`."""
    ordered = sorted(labels, key=lambda label: label.value)
    step = 34 * (span[1] - span[0]) / height
    places: list[float] = []
    for label in ordered:
        crowded = places and any(other.at == label.at for other in ordered[: len(places)])
        places.append(max(label.value, places[-1] + step) if crowded else label.value)
    over = max(0.0, max(places, default=span[1]) - span[1])
    return [
        alt.Chart(alt.Data(values=[{"at": label.at, "value": place - over}]), width="container")
        .mark_text(
            align="left",
            dx=10,
            color=label.color,
            fontWeight=400 if label.color == SOFT else 600,
            lineHeight=13,
            baseline="middle",
            text=alt.ExprRef(f"width > {wide} ? {json.dumps(two_lines(label.text))} : ''"),  # a hidden text takes room
        )
        .encode(x=alt.X("at:Q"), y=alt.Y("value:Q"))
        for place, label in zip(places, ordered, strict=True)
    ]


def two_lines(text: str) -> list[str]:
    """Break a label in two lines near its middle.

    >>> two_lines("retrained each month")
    ['retrained', 'each month']
    """
    words = text.split(" ")
    cut = min(range(1, len(words)), key=lambda k: abs(len(" ".join(words[:k])) - len(text) / 2), default=1)
    return [part for part in (" ".join(words[:cut]), " ".join(words[cut:])) if part]


@dataclass(frozen=True)
class Spot:
    """A mark with a name, in pixels from the lower left corner of the plot."""

    x: float
    y: float
    text: str


@dataclass(frozen=True)
class PlacedLabel:
    """A name and the side of its mark that it is on."""

    text: str
    align: str
    dx: float
    dy: float


def place_labels(
    spots: Sequence[Spot], width: float, height: float, lines: Sequence[Box] = ()
) -> dict[str, PlacedLabel]:
    """Return a place for each name that fits beside its mark, the first names first; others are left out.

    A name crosses one of the `lines` only if it fits nowhere else.

    >>> close = [Spot(50, 50, "er"), Spot(54, 50, "mir"), Spot(52, 51, "online-ewc"), Spot(53, 50, "online-l2")]
    >>> {text: label.align for text, label in place_labels(close, 300, 200).items()}
    {'er': 'right', 'mir': 'left', 'online-ewc': 'left'}
    >>> place_labels([Spot(50, 50, "er")], 300, 200, lines=[(52, 60, 300, 61)])["er"].align
    'right'
    """
    taken: list[Box] = [(spot.x - 5, spot.y - 5, spot.x + 5, spot.y + 5) for spot in spots]
    placed: dict[str, PlacedLabel] = {}
    for spot in spots:
        found = [(box, label) for box, label in _candidates(spot, width, height) if not _hits(box, taken)]
        if found:
            box, label = next((one for one in found if not _hits(one[0], lines)), found[0])
            taken.append(box)
            placed[spot.text] = label
    return placed


def _candidates(spot: Spot, width: float, height: float) -> Iterator[tuple[Box, PlacedLabel]]:
    """Yield the places of a name inside the plot, the best first."""
    size = LETTER * len(spot.text)
    for align, dx, dy in PLACES:
        left = spot.x + dx - {"left": 0.0, "right": size, "center": size / 2}[align]
        low = spot.y - dy - LINE / 2
        box = (left, low, left + size, low + LINE)
        if box[0] >= 0 and box[2] <= width and box[1] >= -4 and box[3] <= height + 10:
            yield box, PlacedLabel(spot.text, align, dx, dy)


def _hits(box: Box, others: Sequence[Box]) -> bool:
    return any(_overlap(box, other) for other in others)


def _overlap(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
