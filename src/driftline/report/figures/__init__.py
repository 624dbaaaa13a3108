"""Figures as files: what `report.landscape`, `report.courses` and `report.adapting` say, adaptation.

`FIGURES` names all of them. A figure is a function that makes the table and one that draws it; whoever adds one adds a
line there. Every figure is saved with its table beside it, as CSV.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import altair as alt
import pandas as pd

from driftline.atomic import write_bytes
from driftline.errors import UserError, unknown
from driftline.plain import csv_frame
from driftline.record import Record
from driftline.report.figures import (
    adaptation,
    adapting,
    courses,
    landscape,
    matrices,
    newcomers,
    open_world,
    sequence,
    stream,
    timeline,
)
from driftline.report.figures.axes import PALE, TEXT, Chart
from driftline.report.figures.export import printed

NOTE = 90  # letters in a line beneath the title
FORMATS = (".svg", ".pdf", ".png", ".html")


@dataclass(frozen=True)
class Figure:
    """What a figure shows, and how."""

    data: Callable[..., pd.DataFrame]
    chart: Callable[[pd.DataFrame], Chart]


def draw(name: str, record: Record, **options: Any) -> tuple[pd.DataFrame, Chart]:
    """The table behind a figure, and its chart. Options that are None are left at what the figure has."""
    if name not in FIGURES:
        raise unknown("figure", name, FIGURES)
    figure = FIGURES[name]
    given = {key: value for key, value in options.items() if value is not None}
    taken = inspect.signature(figure.data).parameters
    for key in given:
        if key not in taken:
            raise UserError(f"figure '{name}' has no option --{key}")
    frame = figure.data(record, **given)
    return frame, finished(figure.chart(frame), frame.attrs.get("notes", []))


def save(frame: pd.DataFrame, chart: Chart, output: Path) -> Path:
    """Write a figure in the format that the file's name says, and its table beside it; where the table is."""
    check_format(output)
    import vl_convert

    spec = chart.to_dict()
    if output.suffix == ".html":
        content: Any = vl_convert.vegalite_to_html(spec, bundle=True).encode()
    elif output.suffix == ".png":
        content = vl_convert.vegalite_to_png(spec, scale=2)
    else:
        svg = output.suffix == ".svg"
        content = printed(spec).encode() if svg else vl_convert.svg_to_pdf(printed(spec, unit=""))
    table = output.with_suffix(".csv")
    write_bytes(output, content)
    write_bytes(table, csv_frame(frame).encode())
    return table


def check_format(output: Path) -> None:
    """Refuse a file that no figure can be written to."""
    if output.suffix not in FORMATS:
        raise UserError(f"a figure is written as {', '.join(FORMATS)}, and {output.name} is none of them")


def finished(chart: Any, notes: list[str]) -> Chart:
    """Dark on white, in one style, with what was left out beneath the title."""
    text = {"labelColor": TEXT, "titleColor": TEXT, "labelFontSize": 10, "titleFontSize": 11}
    if notes:
        lines = [line for note in notes for line in textwrap.wrap(note, NOTE)]
        title, *more = [chart.title, *lines] if isinstance(chart.title, str) and chart.title else lines
        chart = chart.properties(title=alt.Title(title, subtitle=more))
    plain = chart.configure(background="white", font="sans-serif").configure_view(stroke=PALE)
    plain = plain.configure_axis(
        **text, titleFontWeight="normal", domainColor=PALE, gridColor="#F0F0F0", tickColor=PALE
    )
    plain = plain.configure_title(fontSize=12, fontWeight="normal", anchor="start", color=TEXT, subtitleFontSize=10)
    return plain.configure_legend(**text).configure_header(labelColor=TEXT, labelFontSize=11)


FIGURES = {
    "accuracy": Figure(matrices.accuracy, timeline.accuracy),
    "transfer": Figure(matrices.transfer, timeline.transfer),
    "projection": Figure(matrices.projection, timeline.projection),
    "examples": Figure(landscape.examples, sequence.examples),
    "path": Figure(landscape.path, sequence.path),
    "weights": Figure(landscape.weights, sequence.weights),
    "svcca": Figure(landscape.similarity, sequence.similarity),
    "adjacent": Figure(landscape.adjacent, sequence.adjacent),
    "models-over-time": Figure(landscape.over_time, sequence.over_time),
    "curves": Figure(courses.curves, stream.curves),
    "composition": Figure(courses.composition, stream.composition),
    "differences": Figure(courses.differences, stream.differences),
    "gains": Figure(courses.gains, stream.gains),
    "collapse": Figure(adapting.collapse, adaptation.collapse),
    "growth": Figure(adapting.growth, adaptation.growth),
    "severities": Figure(adapting.severities, adaptation.severities),
    "schedule": Figure(adapting.schedule, adaptation.schedule),
    "sweep": Figure(adapting.sweep, adaptation.sweep),
    "rolling": Figure(newcomers.rolling, open_world.rolling),
    "roc": Figure(newcomers.roc, open_world.roc),
    "thresholds": Figure(newcomers.thresholds, open_world.thresholds),
    "classes": Figure(newcomers.classes, open_world.classes),
    "pareto": Figure(newcomers.pareto, open_world.pareto),
}
