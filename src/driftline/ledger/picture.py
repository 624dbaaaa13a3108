"""The picture of printed numbers against ours: one panel per paper, one mark per share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import altair as alt
import pandas as pd

from driftline.errors import UserError
from driftline.io.atomic import write_bytes
from driftline.ledger.catalog import SCALES, Paper
from driftline.ledger.compare import Results
from driftline.ledger.page import entries
from driftline.report.figures.axes import SIZE, Chart, inline_data
from driftline.report.figures.export import print_svg, style
from driftline.report.figures.palette import COLORS, NEUTRAL


def points(papers: Sequence[Paper], results: Results) -> pd.DataFrame:
    """Return one row per share that was printed and computed."""
    rows = [
        {
            "paper": paper.name,
            "item": entry.item.id,
            "scale": SCALES[comparison.scale],
            "method": pair.method,
            "metric": pair.name,
        }
        | {"printed": pair.printed, "ours": pair.ours.value, "low": pair.ours.low, "high": pair.ours.high}
        for paper in papers
        for entry in entries(paper, results)
        for comparison, found in entry.numbers
        for pair in found
        if pair.share and pair.printed is not None
    ]
    return pd.DataFrame(rows)


def write_picture(papers: Sequence[Paper], results: Results, output: Path) -> None:
    """Write the picture as SVG."""
    frame = points(papers, results)
    if frame.empty:
        raise UserError("no result can be compared with a published number, so there is nothing to draw")
    write_bytes(output, print_svg(style(_chart(frame), []).to_dict()).encode())


def _chart(frame: pd.DataFrame) -> Chart:
    share = alt.Scale(domain=[0, 1])
    x = alt.X("printed:Q", scale=share, axis=alt.Axis(title="printed", format=".0%", values=[0, 0.5, 1]))
    y = alt.Y("ours:Q", scale=share, axis=alt.Axis(title="ours", format=".0%", tickCount=5))
    names = list(SCALES.values())
    color = alt.Color("scale:N", scale=alt.Scale(domain=names, range=list(COLORS[: len(names)])))
    color = color.legend(title=None, orient="bottom")
    base = alt.Chart(width=0.8 * SIZE, height=0.8 * SIZE)
    equal = base.transform_aggregate(n="count()").mark_rule(color=NEUTRAL, strokeDash=[4, 3])  # once in each panel
    equal = equal.encode(x=alt.datum(0), x2=alt.datum(1), y=alt.datum(0), y2=alt.datum(1))
    intervals = base.mark_rule(opacity=0.35).encode(x=x, y=alt.Y("low:Q"), y2="high:Q", color=color)
    marks = base.mark_point(filled=True, size=28, opacity=0.8).encode(x=x, y=y, color=color)
    panel = alt.Facet("paper:N", title=None, sort=list(dict.fromkeys(frame["paper"])))
    return (equal + intervals + marks).facet(facet=panel, columns=3, data=inline_data(frame))
