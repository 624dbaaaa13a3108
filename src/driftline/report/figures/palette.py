"""How methods look: one colour, dash and shape each, the same in every section of a page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from driftline.report.figures.charts import COLOURS, DASHES, SHAPES

CHANNELS = {"color": "colour", "strokeDash": "dash", "shape": "shape"}
METHOD = "method"


@dataclass(frozen=True)
class Look:
    """What a method is told by; the dash and the shape matter once the colours are used up."""

    colour: str
    dash: tuple[int, ...]
    shape: str


TURNS = len(SHAPES)
LOOKS = tuple(
    Look(colour, tuple(dash), SHAPES[(place + turn) % TURNS])
    for turn in range(TURNS)
    for place, dash in enumerate(DASHES)
    for colour in COLOURS
)
"""First every colour, then every dash with a shape of its own, then the same dashes with other shapes."""


def looks(sections: Iterable[Sequence[str]]) -> dict[str, Look]:
    """A look for each method, from the methods of each section.

    A look is taken twice only after all have been taken once; among those free, the one whose colour is rarest in the
    section where the method first appears.

    >>> found = looks([["erm", "ft"], ["ft", "tent"]])
    >>> [found[method].colour for method in ("erm", "ft", "tent")]
    ['#0072B2', '#D55E00', '#009E73']
    """
    found: dict[str, Look] = {}
    used: Counter[Look] = Counter()
    for methods in sections:
        near = Counter(found[method].colour for method in methods if method in found)
        for method in methods:
            if method not in found:
                best = min(LOOKS, key=lambda look: (used[look], near[look.colour]))
                found[method] = best
                used[best] += 1
                near[best.colour] += 1
    return found


def shared(looks: Mapping[str, Look]) -> bool:
    """Whether methods are so many that some look the same."""
    return len(looks) > len(LOOKS)


def paint(spec: dict[str, Any], looks: Mapping[str, Look]) -> None:
    """Give the methods of a chart their looks; a chart of anything else stays as it is."""
    for unit in units(spec):
        for channel, part in CHANNELS.items():
            encoding = unit.get("encoding", {}).get(channel, {})
            domain = encoding.get("scale", {}).get("domain", [])
            if encoding.get("field") == METHOD and set(domain) <= looks.keys():
                found = [getattr(looks[name], part) for name in domain]
                encoding["scale"]["range"] = [list(one) if isinstance(one, tuple) else one for one in found]


def link(spec: dict[str, Any]) -> None:
    """Let the page hide methods of a chart and bring one to the front, through the parameters `hidden` and `focus`."""
    linked = [unit for unit in units(spec) if unit.get("encoding", {}).get("color", {}).get("field") == METHOD]
    for unit in linked:
        opacity = unit["mark"].get("opacity", 1)
        unit["transform"] = [{"filter": "indexof(hidden, datum.method) < 0"}, *unit.get("transform", [])]
        unit["encoding"]["opacity"] = {
            "condition": {"test": "focus === '' || focus === datum.method", "value": opacity},
            "value": opacity / 8,
        }
    if linked:
        spec["params"] = [{"name": "hidden", "value": []}, {"name": "focus", "value": ""}, *spec.get("params", [])]


def units(spec: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The parts of a chart that have marks."""
    if "layer" in spec:
        for part in spec["layer"]:
            yield from units(part)
    elif "mark" in spec:
        yield spec
