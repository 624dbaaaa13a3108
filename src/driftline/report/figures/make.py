"""Figures of finished runs as files or charts, from one set of options."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from driftline import registry
from driftline.errors import unknown_name
from driftline.record.run import Record
from driftline.report.analysis.displays import select_methods
from driftline.report.figures.axes import Chart
from driftline.report.figures.base import draw
from driftline.report.figures.export import check_format, save
from driftline.report.figures.layout import Layout, check_colors, check_fontsize, parse_length


def figure(
    name: str,
    record: Record,
    output: str | Path,
    *,
    benchmark: str | None = None,
    methods: Sequence[str] = (),
    width: str | None = None,
    height: str | None = None,
    title: str = "",
    colors: Sequence[str] = (),
    fontsize: float | None = None,
    data_dir: Path | None = None,
    **options: Any,
) -> pd.DataFrame:
    """Write a figure of finished runs, and its numbers as CSV; return the numbers.

    The options are those of `driftline figure`, and those of the figure itself.
    """
    check_format(Path(output))
    layout = Layout(
        parse_length("--width", width),
        parse_length("--height", height),
        check_fontsize(fontsize),
        check_colors(colors),
    )
    frame, chart = draw(name, _select(record, benchmark, methods), data_dir, title, **options)
    save(frame, chart, Path(output), layout)
    return frame


def plot(
    record: Record,
    name: str,
    *,
    benchmark: str | None = None,
    methods: Sequence[str] = (),
    title: str = "",
    data_dir: Path | None = None,
    **options: object,
) -> Chart:
    """Return a figure, or a metric over time, as an Altair chart."""
    figures, metrics = registry.names("figure"), registry.names("metric")
    if name not in figures:
        if name not in metrics:
            raise unknown_name("figure or metric", name, [*figures, *metrics])
        name, options = "curves", {"metric": name, **options}
    return draw(name, _select(record, benchmark, methods), data_dir, title, **options)[1]


def _select(record: Record, benchmark: str | None, methods: Sequence[str]) -> Record:
    if benchmark:
        known = {card.run.benchmark for card in record.cards}
        if benchmark not in known:
            raise unknown_name("run of the benchmark", benchmark, known)
        record = Record(run for run in record.runs if run.card.run.benchmark == benchmark)
    return select_methods(record, methods) if methods else record
