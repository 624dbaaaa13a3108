"""Figures as files, in the width of a printed column or page, with legible text."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import altair as alt
import pandas as pd

from driftline.errors import UserError
from driftline.io.atomic import write_bytes
from driftline.io.sanitize import frame_to_csv
from driftline.report.figures.axes import PALE, TEXT, Chart
from driftline.report.figures.layout import (
    CHART_FONT,
    COLUMN,
    COLUMN_PIXELS,
    DEFAULT,
    MIN_FONT,
    PAGE,
    SIZE,
    Layout,
    scale_fonts,
    svg_size,
)
from driftline.types import JsonObject

FORMATS = (".svg", ".pdf", ".png", ".html", ".json")
PRINT_SCALE = 300 / 72  # pixels per point
NOTE_WIDTH = 90  # characters in a line below the title


def save(frame: pd.DataFrame, chart: Chart, output: Path, layout: Layout = DEFAULT) -> Path:
    """Write a figure in the format of the file's suffix, and its table as CSV; return the path of the table.

    `.json` is the Vega-Lite spec.
    """
    check_format(output)
    spec = layout.apply(chart.to_dict())
    table = output.with_suffix(".csv")
    write_bytes(output, _content(spec, output.suffix, layout))
    write_bytes(table, frame_to_csv(frame).encode())
    return table


def _content(spec: JsonObject, suffix: str, layout: Layout) -> bytes:
    """Return the bytes of a figure in its layout."""
    import vl_convert

    if suffix == ".json":
        return (json.dumps(spec, indent=1, ensure_ascii=False) + "\n").encode()
    if suffix == ".html":
        return bytes(vl_convert.vegalite_to_html(spec, bundle=True).encode())
    if suffix == ".png":
        return bytes(vl_convert.vegalite_to_png(spec, scale=PRINT_SCALE if layout.in_points else 2))
    unit = "pt" if suffix == ".svg" else ""
    svg = point_svg(spec, layout, unit) if layout.in_points else print_svg(spec, unit)
    return svg.encode() if suffix == ".svg" else bytes(vl_convert.svg_to_pdf(svg))


def check_format(output: Path) -> None:
    """Raise an error if the suffix is not a format of figures."""
    if output.suffix not in FORMATS:
        raise UserError(f"{output.name}: a figure is written as {', '.join(FORMATS)}")


def style(chart: Chart, notes: list[str]) -> Chart:
    """Return a chart in the style of print, with notes below the title."""
    text = {"labelColor": TEXT, "titleColor": TEXT, "labelFontSize": 10, "titleFontSize": 11}
    if notes:
        lines = [line for note in notes for line in textwrap.wrap(note, NOTE_WIDTH)]
        title, *more = [chart.title, *lines] if isinstance(chart.title, str) and chart.title else lines
        chart = chart.properties(title=alt.Title(title, subtitle=more))
    plain = chart.configure(background="white", font="sans-serif").configure_view(stroke=PALE)
    plain = plain.configure_axis(
        **text, titleFontWeight="normal", domainColor=PALE, gridColor="#F0F0F0", tickColor=PALE
    )
    plain = plain.configure_title(fontSize=12, fontWeight="normal", anchor="start", color=TEXT, subtitleFontSize=10)
    return plain.configure_legend(**text).configure_header(labelColor=TEXT, labelFontSize=11)


def print_svg(spec: JsonObject, unit: str = "pt") -> str:
    """Return a chart as SVG in the width of print, with larger text where scaling would make it too small.

    A PDF has points where the SVG has pixels, so it needs an SVG without unit.
    """
    import vl_convert

    svg = vl_convert.vegalite_to_svg(spec)
    width, _ = svg_size(svg)
    goal = COLUMN if width <= COLUMN_PIXELS else PAGE
    factor = MIN_FONT / (CHART_FONT * goal / width)
    if factor > 1:
        svg = vl_convert.vegalite_to_svg(scale_fonts(spec, factor))
    width, height = svg_size(svg)
    return SIZE.sub(f'width="{goal:g}{unit}" height="{height * goal / width:.2f}{unit}"', svg, count=1)


def point_svg(spec: JsonObject, layout: Layout, unit: str) -> str:
    """Return a chart whose pixels are points as SVG, in exactly the size of the layout."""
    import vl_convert

    svg = vl_convert.vegalite_to_svg(spec)
    width, height = svg_size(svg)
    return SIZE.sub(f'width="{layout.width or width:g}{unit}" height="{layout.height or height:g}{unit}"', svg, count=1)
