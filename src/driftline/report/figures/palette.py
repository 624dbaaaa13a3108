"""Colors, dashes and shapes of methods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from driftline.types import JsonObject

# Okabe and Ito's colors, which color-blind readers can distinguish; black is left to text, yellow comes late.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#A6761D", "#8C8C8C")
DASHES = ([1, 0], [6, 3], [2, 2], [8, 2, 2, 2])
SHAPES = ("circle", "triangle-up", "square", "diamond")
RED, WHITE, BLUE = "#B2182B", "#FFFFFF", "#2166AC"
NEUTRAL = "#A9B2BD"
CHANNELS = {"color": "color", "strokeDash": "dash", "shape": "shape"}
METHOD = "method"


def color(index: int) -> str:
    """Return the color of the method at this index."""
    return COLORS[index % len(COLORS)]


def dash(index: int) -> list[int]:
    """Return the dash pattern, which changes when the colors repeat."""
    return DASHES[index // len(COLORS) % len(DASHES)]


def shape(index: int) -> str:
    """Return the shape of marks: one per dash pattern, and another one when colors and dashes repeat together.

    >>> shape(0), shape(8), shape(32)
    ('circle', 'triangle-up', 'triangle-up')
    """
    cycle, dashed = divmod(index // len(COLORS), len(DASHES))
    return SHAPES[(dashed + cycle) % len(SHAPES)]


@dataclass(frozen=True)
class Style:
    """Look of a method; dash and shape matter once the colors repeat."""

    color: str
    dash: tuple[int, ...]
    shape: str


def apply_styles(spec: JsonObject, styles: Mapping[str, Style]) -> None:
    """Set the styles of the methods of a chart; a chart of other things stays unchanged."""
    for unit in unit_specs(spec):
        for channel, part in CHANNELS.items():
            encoding = unit.get("encoding", {}).get(channel, {})
            domain = encoding.get("scale", {}).get("domain", [])
            if encoding.get("field") == METHOD and set(domain) <= styles.keys():
                values = [getattr(styles[name], part) for name in domain]
                encoding["scale"]["range"] = [list(one) if isinstance(one, tuple) else one for one in values]


def make_interactive(spec: JsonObject) -> None:
    """Let the page emphasize a method of a chart through the parameter `focus`."""
    linked = [unit for unit in unit_specs(spec) if unit.get("encoding", {}).get("color", {}).get("field") == METHOD]
    for unit in linked:
        opacity = unit["mark"].get("opacity", 1)
        unit["encoding"]["opacity"] = {
            "condition": {"test": "focus === '' || focus === datum.method", "value": opacity},
            "value": opacity / 8,
        }
    if linked:
        spec["params"] = [{"name": "focus", "value": ""}, *spec.get("params", [])]


def unit_specs(spec: JsonObject) -> Iterator[JsonObject]:
    """Yield the parts of a chart that have marks."""
    if "layer" in spec:
        for part in spec["layer"]:
            yield from unit_specs(part)
    elif "mark" in spec:
        yield spec
