"""The layout of a figure in print: its size, the size of its text, its colors, and a legend that fits."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from driftline.errors import UserError, unknown_name
from driftline.types import JsonObject

COLUMN, PAGE = 252.0, 504.0  # points: 3.5 and 7 inches
COLUMN_PIXELS = 400  # the widest figure that fits a column
MIN_FONT = 7.0  # points, as journals require
CHART_FONT = 10  # pixels of the smallest font in charts
SIZE = re.compile(r'width="([\d.]+)" height="([\d.]+)"')
POINTS = {"in": 72.0, "cm": 72 / 2.54, "mm": 72 / 25.4, "pt": 1.0}
MAX_LENGTH = 3600.0  # points
MAX_STEPS = 8  # to find the size of panels
TOLERANCE = 2.0  # points
MIN_PANEL = 40.0  # points
WIDE_PANEL = 110.0  # points; panels that would be narrower move below each other
THINNER = 0.6  # lines in print, relative to those on a screen
LETTER = 0.6  # width of a letter, in font sizes
PARTS = ("layer", "concat", "hconcat", "vconcat")


@dataclass(frozen=True)
class Layout:
    """The size of a figure in points, the size of its text, and the colors of methods."""

    width: float | None = None
    height: float | None = None
    fontsize: float | None = None
    colors: Sequence[str] = ()

    @property
    def in_points(self) -> bool:
        """Whether pixels of the chart are points in print."""
        return self.width is not None or self.height is not None or self.fontsize is not None

    def apply(self, spec: JsonObject) -> JsonObject:
        """Return a chart in this layout."""
        if self.colors:
            _set_colors(spec, self.colors)
        return self._fit(spec) if self.in_points else spec

    def _fit(self, spec: JsonObject) -> JsonObject:
        """Return the chart with text of the right size, and panels that fill the width and the height."""
        fontsize = self.fontsize or MIN_FONT
        width = self.width or (COLUMN if _drawn_size(spec)[0] <= COLUMN_PIXELS else PAGE)
        spec = _with_legend_below(scale_fonts(_thinner(spec), fontsize / CHART_FONT), width, fontsize)
        for view in _views(spec):
            if "columns" in view:
                view["columns"] = max(1, min(view["columns"], int(width // (WIDE_PANEL + 5 * fontsize))))
        fitted = _fill(spec, width, 0)
        return _fill(fitted, self.height, 1) if self.height else fitted


DEFAULT = Layout()


def parse_length(flag: str, text: str | None) -> float | None:
    """Return a length in points.

    >>> parse_length("--width", "3.5in"), parse_length("--width", "25.4 mm"), parse_length("--width", None)
    (252.0, 72.0, None)
    """
    if text is None:
        return None
    match = re.fullmatch(r"(\d+\.?\d*|\.\d+) *(in|cm|mm|pt)", text.strip())
    length = float(match[1]) * POINTS[match[2]] if match else 0.0
    if not 0 < length <= MAX_LENGTH:
        raise UserError(f"{flag} {text}: write a length as 3.3in, 8.4cm, 84mm or 240pt, up to {MAX_LENGTH:g}pt")
    return length


def check_fontsize(size: float | None) -> float | None:
    """Return the size of text in points; refuse one that cannot be read."""
    if size is not None and not 4 <= size <= 24:
        raise UserError(f"--fontsize {size:g}: give 4 to 24 points")
    return size


def check_colors(colors: Sequence[str]) -> Sequence[str]:
    """Return colors, which are hexadecimal or names of CSS."""
    for color in colors:
        known = alt.ColorName.resolve_references()["enum"]
        if not re.fullmatch(r"#([0-9A-Fa-f]{3}){1,2}", color) and color.lower() not in known:
            raise unknown_name("color", color, ["#0072B2", *known])
    return colors


def svg_size(svg: str) -> tuple[float, float]:
    """Return the width and height of an SVG.

    >>> svg_size('<svg width="316" height="62">')
    (316.0, 62.0)
    """
    found = SIZE.search(svg)
    assert found is not None
    return float(found[1]), float(found[2])


def scale_fonts(spec: object, factor: float) -> Any:
    """Return a chart with all font sizes multiplied by a factor.

    >>> scale_fonts({"axis": {"labelFontSize": 10}, "width": 5}, 1.5)
    {'axis': {'labelFontSize': 15.0}, 'width': 5}
    """
    if isinstance(spec, list):
        return [scale_fonts(part, factor) for part in spec]
    if not isinstance(spec, dict):
        return spec
    return {
        key: part * factor
        if key.lower().endswith("fontsize") and isinstance(part, int | float)
        else scale_fonts(part, factor)
        for key, part in spec.items()
    }


def _thinner(spec: JsonObject) -> JsonObject:
    """Return the chart with marks for print: points are larger than pixels of a screen."""
    for view in _views(spec):
        mark = view.get("mark")
        if isinstance(mark, dict):
            for name, factor in (("strokeWidth", THINNER), ("size", THINNER**2)):
                if name in mark:
                    mark[name] *= factor
    return spec


def _fill(spec: JsonObject, goal: float, axis: int) -> JsonObject:
    """Return the chart with panels scaled so that it is as wide (axis 0, keeping proportions) or high (1) as the goal.

    Axes, titles and legends keep their size, so the size of the chart grows nearly linearly with the factor.
    """

    def scaled(factor: float) -> JsonObject:
        return scale_panels(spec, factor if axis == 0 else 1.0, factor)

    side = ("width", "height")[axis]
    if not (panels := _panel_sizes(spec, side)):
        raise UserError(f"the {side} of this figure follows from what it shows: leave out --{side}")
    low = high = MIN_PANEL / min(panels)
    small = large = _drawn_size(scaled(low))[axis]
    if small > goal + TOLERANCE:
        raise UserError(
            f"the {side} of this figure is at least {small / 72:.1f}in: make it larger, its text smaller, or show "
            "fewer methods"
        )
    while large < goal - TOLERANCE:
        low, small, high = high, large, high * (1 + (goal - large) / MIN_PANEL)  # exact for one panel
        large = _drawn_size(scaled(high))[axis]
    for _ in range(MAX_STEPS):
        if abs(large - goal) <= TOLERANCE or large == small:
            break
        middle = low + (high - low) * (goal - small) / (large - small)
        drawn = _drawn_size(scaled(middle))[axis]
        low, small, high, large = (
            (low, small, middle, drawn) if drawn >= goal - TOLERANCE else (middle, drawn, high, large)
        )
    return scaled(high)


def scale_panels(spec: JsonObject, across: float, down: float) -> JsonObject:
    """Return a chart with the width and height of its panels multiplied; a size by steps stays.

    >>> scale_panels({"concat": [{"mark": "bar", "width": 200, "height": {"step": 20}}]}, 0.5, 2)
    {'concat': [{'mark': 'bar', 'width': 100.0, 'height': {'step': 20}}]}
    """
    scaled = dict(spec)
    for name, factor in (("width", across), ("height", down)):
        if isinstance(spec.get(name), int | float):
            scaled[name] = spec[name] * factor
    for name in PARTS:
        if name in spec:
            scaled[name] = [scale_panels(part, across, down) for part in spec[name]]
    if "spec" in spec:
        scaled["spec"] = scale_panels(spec["spec"], across, down)
    return scaled


def _views(spec: JsonObject) -> Iterator[JsonObject]:
    """Yield a chart and all its parts."""
    yield spec
    for part in [part for name in PARTS for part in spec.get(name, [])] + ([spec["spec"]] if "spec" in spec else []):
        yield from _views(part)


def _panel_sizes(spec: JsonObject, name: str) -> list[float]:
    return [view[name] for view in _views(spec) if isinstance(view.get(name), int | float)]


def method_scales(spec: JsonObject) -> list[JsonObject]:
    """Return the color scales of methods."""
    colors = [view.get("encoding", {}).get("color", {}) for view in _views(spec)]
    return [color["scale"] for color in colors if color.get("field") == "method" and "domain" in color.get("scale", {})]


def _set_colors(spec: JsonObject, colors: Sequence[str]) -> None:
    scales = method_scales(spec)
    if not scales:
        raise UserError("--colors: this figure has no colors of methods")
    for scale in scales:
        if len(colors) < len(scale["domain"]):
            raise UserError(f"--colors has {len(colors)} color(s) for {len(scale['domain'])} methods")
        scale["range"] = list(colors[: len(scale["domain"])])


def _with_legend_below(spec: JsonObject, width: float, fontsize: float) -> JsonObject:
    """Return the chart with the legend of methods below it, in as many columns as fit the width."""
    names = [name for scale in method_scales(spec) for name in scale["domain"]]
    if not names:
        return spec
    entry = (max(map(len, names)) * LETTER + 4) * fontsize
    below = {
        "orient": "bottom",
        "columns": max(1, int(width // entry)),
        "labelLimit": width,
        "symbolSize": 4 * fontsize,
    }
    config = spec.get("config", {})
    return {**spec, "config": {**config, "legend": {**config.get("legend", {}), **below}}}


def _drawn_size(spec: JsonObject) -> tuple[float, float]:
    import vl_convert

    return svg_size(vl_convert.vegalite_to_svg(spec))
