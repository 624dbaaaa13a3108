"""Figures as files, in the width of a printed column or page, with legible text."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

import altair as alt
import pandas as pd

from driftline.errors import UserError
from driftline.io.atomic import write_bytes
from driftline.io.sanitize import frame_to_csv
from driftline.report.figures.axes import PALE, TEXT, Chart
from driftline.types import JsonObject

FORMATS = (".svg", ".pdf", ".png", ".html")
COLUMN, PAGE = 252.0, 504.0  # points: 3.5 and 7 inches
COLUMN_PIXELS = 400  # the widest figure that fits a column
MIN_FONT = 7.0  # points, as journals require
CHART_FONT = 10  # pixels of the smallest font in charts
NOTE_WIDTH = 90  # characters in a line below the title
SIZE = re.compile(r'width="([\d.]+)" height="([\d.]+)"')


def save(frame: pd.DataFrame, chart: Chart, output: Path) -> Path:
    """Write a figure in the format of the file's suffix, and its table as CSV; return the path of the table."""
    check_format(output)
    import vl_convert

    spec = chart.to_dict()
    if output.suffix == ".html":
        content: bytes = vl_convert.vegalite_to_html(spec, bundle=True).encode()
    elif output.suffix == ".png":
        content = vl_convert.vegalite_to_png(spec, scale=2)
    elif output.suffix == ".svg":
        content = print_svg(spec).encode()
    else:
        content = vl_convert.svg_to_pdf(print_svg(spec, unit=""))
    table = output.with_suffix(".csv")
    write_bytes(output, content)
    write_bytes(table, frame_to_csv(frame).encode())
    return table


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
