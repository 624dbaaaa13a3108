"""Heat maps over (t, tau): a model trained at t, tested at tau."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import altair as alt
import pandas as pd

from driftline.report.analysis.curves import cells_by_method
from driftline.report.analysis.groups import Group
from driftline.report.figures.axes import COLUMNS, SIZE, Chart, Data, estimate_tooltips, time_axis
from driftline.report.figures.base import Row
from driftline.report.figures.palette import BLUE, RED, WHITE

WIDTH = 340  # on the page
NOT_EVALUATED = "#E4E4E4"


def accuracy_map(data: object, times: Sequence[str], domain: tuple[float, float]) -> alt.Chart:
    """Return the map of A(t, tau)."""
    return _heat_map(data, times, alt.Scale(domain=list(domain), scheme="viridis"), "A(t, τ)", [])


def transfer_map(data: object, times: Sequence[str], lowest: float, delta: float) -> alt.Chart:
    """Return the map of g(t, tau): white at delta, blue where the model is still valid, red where it is not."""
    ends = [min(lowest, delta - 0.05), delta, max(1.0, delta + 0.05)]
    scale = alt.Scale(domain=ends, range=[RED, WHITE, BLUE], interpolate="lab")
    return _heat_map(data, times, scale, "g(t, τ)", [delta])


def _heat_map(data: Data, times: Sequence[str], scale: alt.Scale, name: str, ticks: list[float]) -> alt.Chart:
    low, high = scale.domain[0], scale.domain[-1]
    marks = [low, *(ticks or [low + (high - low) * k / 4 for k in (1, 2, 3)]), high]
    length = WIDTH * 3 // 4
    legend = alt.Legend(title=name, format=".0%", values=marks, gradientLength=length, labelOverlap=False)
    sort = alt.Scale(domain=list(times), padding=0)
    chart: alt.Chart = (
        alt.Chart(data, width=WIDTH, height=WIDTH, description=f"{name} by training period t and test period τ")
        .mark_rect()
        .encode(
            x=alt.X("tau:N", scale=sort, axis=time_axis(times, "tested at τ")),
            y=alt.Y("time:N", scale=sort, axis=time_axis(times, "trained at t")),
            color=alt.Color("value:Q", scale=scale, legend=legend),
            tooltip=estimate_tooltips(name, ("time", "trained at t"), ("tau", "tested at τ")),
        )
    )
    return chart


def heat_map_rows(group: Group, metric: str) -> Iterable[Row]:
    """Return a metric of (t, tau) for all methods of a group, means over seeds."""
    for method, cells in cells_by_method(group, metric).items():
        yield from ({"method": method, **row} for row in cells.records())


def heat_maps(frame: pd.DataFrame, draw: Callable[[pd.DataFrame, list[str], tuple[float, float]], alt.Chart]) -> Chart:
    """Return a heat map per method, with one scale for all methods of a panel."""
    rows = []
    for panel, part in frame.groupby("panel", sort=False):
        low, high = float(part["value"].min()), float(part["value"].max())
        ends = (low, high) if low < high else (max(0.0, low - 0.05), low + 0.05)
        view = alt.ViewBackground(fill=NOT_EVALUATED)
        maps = [
            draw(cells, frame.attrs["times"][panel], ends).properties(
                width=1.15 * SIZE, height=1.15 * SIZE, title=str(method), view=view
            )
            for method, cells in part.groupby("method", sort=False)
        ]
        rows.append(alt.concat(*maps, columns=COLUMNS).properties(title=str(panel)))
    return rows[0] if len(rows) == 1 else alt.vconcat(*rows).resolve_scale(color="independent")
