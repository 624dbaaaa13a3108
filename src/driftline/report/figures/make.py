"""Figures of finished runs as files, from one set of options."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from driftline.errors import unknown_name
from driftline.record.run import Record
from driftline.report.analysis.displays import select_methods
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
    if benchmark:
        known = {card.run.benchmark for card in record.cards}
        if benchmark not in known:
            raise unknown_name("run of the benchmark", benchmark, known)
        record = Record(run for run in record.runs if run.card.run.benchmark == benchmark)
    if methods:
        record = select_methods(record, methods)
    frame, chart = draw(name, record, data_dir, title, **options)
    save(frame, chart, Path(output), layout)
    return frame
