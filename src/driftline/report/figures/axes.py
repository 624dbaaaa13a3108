"""What the figures have in common: colours, shapes and dashes of methods, and one panel for each kind of run."""

from __future__ import annotations

import json
from typing import Any

import altair as alt
import pandas as pd

from driftline.report.figures.charts import colour, dash, shape

SIZE = 230  # of a panel
TEXT, PALE = "#222222", "#DDDDDD"
Chart = Any  # altair has a class for every way of putting charts together


def methods(frame: pd.DataFrame) -> alt.Color:
    """A colour for each method, the same in all panels."""
    names = list(dict.fromkeys(frame["method"]))
    scale = alt.Scale(domain=names, range=[colour(k) for k in range(len(names))])
    return alt.Color("method:N", scale=scale, legend=alt.Legend(title=None, symbolStrokeWidth=2))


def shapes(frame: pd.DataFrame) -> alt.Shape:
    """Shapes that tell methods apart once the colours are used up."""
    names = list(dict.fromkeys(frame["method"]))
    marks = [shape(k) for k in range(len(names))]
    return alt.Shape("method:N", scale=alt.Scale(domain=names, range=marks))


def dashes(frame: pd.DataFrame) -> alt.StrokeDash:
    """Dashes that tell methods apart once the colours are used up."""
    names = list(dict.fromkeys(frame["method"]))
    return alt.StrokeDash("method:N", scale=alt.Scale(domain=names, range=[dash(k) for k in range(len(names))]))


def panels(chart: Chart, frame: pd.DataFrame, by: list[str]) -> Chart:
    """One chart for each value of these columns; what is the same everywhere is not repeated."""
    varying = [name for name in by if frame[name].nunique() > 1]
    if not varying:
        return chart.properties(data=rows_of(frame), title=str(frame[by[0]].iloc[0]))
    order = {name: list(dict.fromkeys(frame[name])) for name in varying}
    if len(varying) == 1:
        [(name, sort)] = order.items()
        title = "" if name == by[0] else str(frame[by[0]].iloc[0])
        facet = alt.Facet(f"{name}:N", title=None, sort=sort)
        return chart.facet(facet=facet, columns=3, data=rows_of(frame)).properties(title=title)
    down, across = varying
    row = alt.Row(f"{down}:N", title=None, sort=order[down])
    column = alt.Column(f"{across}:N", title=None, sort=order[across])
    return chart.facet(row=row, column=column, data=rows_of(frame))


def apart(chart: Chart, *scales: str) -> Chart:
    """Every panel with scales of its own."""
    own: Any = dict.fromkeys(scales, "independent")
    return chart.resolve_scale(**own) if isinstance(chart, alt.FacetChart) else chart


def rows_of(frame: pd.DataFrame) -> alt.Data:
    """The rows themselves: altair refuses tables of more than 5,000."""
    return alt.Data(values=json.loads(frame.to_json(orient="records")))
