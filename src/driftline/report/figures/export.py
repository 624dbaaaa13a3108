"""Figures at the size of print: as wide as a column, or as the page if they are wider, with legible letters."""

from __future__ import annotations

import re
from typing import Any

COLUMN, PAGE = 252.0, 504.0  # points: 3.5 and 7 inches
WIDEST = 400  # pixels of a figure that fits a column
SMALLEST = 7.0  # points of a letter that journals still print
LETTERS = 10  # pixels of the smallest letters that charts have
SIZE = re.compile(r'width="([\d.]+)" height="([\d.]+)"')


def printed(spec: dict[str, Any], unit: str = "pt") -> str:
    """A chart as SVG in the width of print; where that would make letters too small, they are drawn larger first.

    A PDF made of it has points where the SVG has pixels: for one, the unit is none.
    """
    import vl_convert

    svg = vl_convert.vegalite_to_svg(spec)
    width, _ = extent(svg)
    goal = COLUMN if width <= WIDEST else PAGE
    more = SMALLEST / (LETTERS * goal / width)
    if more > 1:
        svg = vl_convert.vegalite_to_svg(enlarged(spec, more))
    width, height = extent(svg)
    return SIZE.sub(f'width="{goal:g}{unit}" height="{height * goal / width:.2f}{unit}"', svg, count=1)


def extent(svg: str) -> tuple[float, float]:
    """Width and height of a drawing.

    >>> extent('<svg width="316" height="62">')
    (316.0, 62.0)
    """
    found = SIZE.search(svg)
    assert found is not None
    return float(found[1]), float(found[2])


def enlarged(spec: Any, times: float) -> Any:
    """The same with larger letters.

    >>> enlarged({"axis": {"labelFontSize": 10}, "width": 5}, 1.5)
    {'axis': {'labelFontSize': 15.0}, 'width': 5}
    """
    if isinstance(spec, list):
        return [enlarged(part, times) for part in spec]
    if not isinstance(spec, dict):
        return spec
    return {
        key: part * times
        if key.lower().endswith("fontsize") and isinstance(part, int | float)
        else enlarged(part, times)
        for key, part in spec.items()
    }
