"""The figures of `timeline`: accuracy and transfer by (t, tau), and features in two dimensions, drawn."""

from __future__ import annotations

from collections.abc import Callable

import altair as alt
import pandas as pd

from driftline.report.figures import charts
from driftline.report.figures.axes import SIZE, Chart, rows_of

ACROSS = 3
SIDE = 1.15 * SIZE  # a map is as high as its legend
UNTESTED = "#E4E4E4"


def accuracy(frame: pd.DataFrame) -> Chart:
    """A heat map per method, with one scale for all methods of a panel."""

    def one(part: pd.DataFrame, times: list[str], ends: tuple[float, float]) -> alt.Chart:
        return charts.accuracy_chart(rows_of(part), times, ends)

    return _maps(frame, one)


def transfer(frame: pd.DataFrame) -> Chart:
    """A heat map per method: white at delta, blue above it and red below."""

    def one(part: pd.DataFrame, times: list[str], ends: tuple[float, float]) -> alt.Chart:
        return charts.transfer_chart(rows_of(part), times, ends[0], float(part["delta"].iloc[0]))

    return _maps(frame, one)


def _maps(frame: pd.DataFrame, one: Callable[[pd.DataFrame, list[str], tuple[float, float]], alt.Chart]) -> Chart:
    rows = []
    for panel, of_panel in frame.groupby("panel", sort=False):
        times = frame.attrs["times"][panel]
        low, high = float(of_panel["value"].min()), float(of_panel["value"].max())
        ends = (low, high) if low < high else (max(0.0, low - 0.05), low + 0.05)
        placed = [
            one(part, times, ends).properties(
                width=SIDE, height=SIDE, title=str(method), view=alt.ViewBackground(fill=UNTESTED)
            )
            for method, part in of_panel.groupby("method", sort=False)
        ]
        rows.append(alt.concat(*placed, columns=ACROSS).properties(title=str(panel)))
    return rows[0] if len(rows) == 1 else alt.vconcat(*rows).resolve_scale(color="independent")


def projection(frame: pd.DataFrame) -> Chart:
    """A row of panels per method, one for each stretch of time, a colour per class."""
    classes = sorted(set(frame["class"]))
    rows = []
    for (panel, method, seed, how), part in frame.groupby(["panel", "method", "seed", "projection"], sort=False):
        chart = charts.scatter_chart(rows_of(part), list(dict.fromkeys(part["stretch"])), classes)
        told = f"{panel}: {method}, seed {seed}, {how} of {len(part):,} held-out samples"
        rows.append(chart.properties(title=told))
    return rows[0] if len(rows) == 1 else alt.vconcat(*rows)
