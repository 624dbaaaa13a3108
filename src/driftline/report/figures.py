"""Figures as files: what `report.landscape` says, drawn.

`FIGURES` names all of them. A figure is a function that makes the table and one that draws it; whoever adds one adds a
line there. Every figure is saved with its table beside it, as CSV.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from driftline.atomic import write_bytes
from driftline.errors import UserError, unknown
from driftline.record import Record
from driftline.report import landscape
from driftline.report.charts import COLOURS, colour, dash

FORMATS = (".svg", ".pdf", ".png", ".html")
SIZE = 230  # of a panel
PICTURE = 56
SHAPES = ("circle", "triangle-up", "square", "diamond")
TEXT, PALE = "#222222", "#DDDDDD"
Chart = Any  # altair has a class for every way of putting charts together


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
    if output.suffix == ".svg":
        content: Any = vl_convert.vegalite_to_svg(spec).encode()
    elif output.suffix == ".pdf":
        content = vl_convert.vegalite_to_pdf(spec)
    elif output.suffix == ".png":
        content = vl_convert.vegalite_to_png(spec, scale=2)
    else:
        content = vl_convert.vegalite_to_html(spec, bundle=True).encode()
    table = output.with_suffix(".csv")
    write_bytes(output, content)
    write_bytes(table, frame.to_csv(index=False).encode())
    return table


def check_format(output: Path) -> None:
    """Refuse a file that no figure can be written to."""
    if output.suffix not in FORMATS:
        raise UserError(f"a figure is written as {', '.join(FORMATS)}, and {output.name} is none of them")


def examples(frame: pd.DataFrame) -> Chart:
    """A row of pictures per step, a column per class, the label under each."""
    times = list(dict.fromkeys(frame["time"]))
    x = alt.X("column:O", axis=None)
    y = alt.Y("time:N", sort=times, axis=alt.Axis(title=None, domain=False, ticks=False, labelLimit=260))
    down, across = (int(frame.groupby("panel")[name].nunique().max()) for name in ("time", "column"))
    base = alt.Chart(width=(PICTURE + 8) * across, height=(PICTURE + 22) * down).encode(x=x, y=y)
    pictures = base.mark_image(width=PICTURE, height=PICTURE, yOffset=-6, aria=False).encode(url="picture:N")
    labels = base.mark_text(dy=PICTURE // 2 + 3, fontSize=9, color=TEXT, limit=PICTURE + 6).encode(text="label:N")
    return _apart(_panels(pictures + labels, frame, ["panel"]), "y")


def path(frame: pd.DataFrame) -> Chart:
    """Accuracy along s; circles where the networks as they are come to."""
    x = alt.X("s:Q", axis=alt.Axis(title="s: 0 before the last step, 1 after it", tickCount=5))
    y = alt.Y(
        "accuracy:Q", scale=alt.Scale(zero=False), axis=alt.Axis(title="accuracy at the final step", format=".0%")
    )
    base = alt.Chart(width=1.4 * SIZE, height=SIZE).encode(
        x=x, y=y, color=_methods(frame), detail="run:N", tooltip=["method:N", "seed:O", "s:Q", "accuracy:Q", "n:Q"]
    )
    line = base.mark_line(strokeWidth=1.8).encode(strokeDash=_dashes(frame))
    ends = base.mark_point(filled=False, size=45, opacity=1).encode(shape=_shapes(frame))
    ends = ends.transform_filter("datum.statistics == 'own'")
    return _panels(line.transform_filter("datum.statistics != 'own'") + ends, frame, ["panel"])


def weights(frame: pd.DataFrame) -> Chart:
    """Two projections per layer; the cross at 0 is the oracle."""
    return _trails(frame, "historical", "final", "along d_H: ERM on history", "along d_T: few final samples", 0.0)


def similarity(frame: pd.DataFrame) -> Chart:
    """Two similarities per layer; the cross at 1 is the oracle."""
    half, most = (f"SVCCA with the oracle, share {share:g}" for share in landscape.SHARES)
    return _trails(frame, "half", "most", half, most, 1.0)


def adjacent(frame: pd.DataFrame) -> Chart:
    """A point per trial, a line through the best of each strength; dashed lines for models that are not joint."""
    base = alt.Chart(width=1.4 * SIZE, height=SIZE)
    x = alt.X("strength:O", axis=alt.Axis(title="strength of adjacent regularisation", labelAngle=0))
    y = alt.Y("score:Q", scale=alt.Scale(zero=False), axis=alt.Axis(title="validation accuracy", format=".0%"))
    told = ["method:N", "seed:O", "score:Q", "lr:Q", "weight_decay:Q", "dropout:Q", "strength:Q"]
    tied = base.transform_filter("isValid(datum.strength)").encode(x=x, color=_methods(frame))
    points = tied.mark_point(filled=True, opacity=0.6).encode(y=y, tooltip=told)
    best = tied.mark_line(strokeWidth=1.8).encode(y=alt.Y("max(score):Q"), detail="run:N")
    rules = base.transform_filter("!isValid(datum.strength)").mark_rule(strokeDash=[5, 3])
    return _panels(best + points + rules.encode(y=y, color=_methods(frame), tooltip=told), frame, ["panel"])


def over_time(frame: pd.DataFrame) -> Chart:
    """A map on which one unit is the same in both directions; numbers are steps."""
    far = 1.15 * float(np.abs(frame[["x", "y"]].to_numpy()).max()) or 1.0
    scale = alt.Scale(domain=[-far, far], nice=False)
    axis = alt.Axis(title=None, labels=False, ticks=False)
    base = alt.Chart(width=1.5 * SIZE, height=1.5 * SIZE).encode(
        x=alt.X("x:Q", scale=scale, axis=axis), y=alt.Y("y:Q", scale=scale, axis=axis), color=_methods(frame)
    )
    told = ["method:N", "step:O", "accuracy:Q", "explained:Q", "stress:Q"]
    held = [
        f"{panel}, seed {seed}: two axes hold {share:.0%} of the spread"
        for panel, seed, share in zip(frame["panel"], frame["seed"], frame["explained"], strict=True)
    ]
    return _panels(_steps(base, frame, told), frame.assign(map=held), ["map"])


def _trails(frame: pd.DataFrame, x: str, y: str, x_title: str, y_title: str, oracle: float) -> Chart:
    """Models by step, a panel per layer, and a cross where the oracle is."""
    base = alt.Chart(width=SIZE, height=SIZE).encode(
        x=alt.X(f"{x}:Q", scale=alt.Scale(zero=False), axis=alt.Axis(title=x_title, tickCount=5)),
        y=alt.Y(f"{y}:Q", scale=alt.Scale(zero=False), axis=alt.Axis(title=y_title, tickCount=5)),
        color=_methods(frame),
    )
    here = alt.datum(oracle)
    cross = alt.Chart().mark_point(shape="cross", angle=45, size=90, color=TEXT, filled=True)
    shown = cross.encode(x=here, y=here) + _steps(base, frame, ["method:N", "seed:O", "step:O", f"{x}:Q", f"{y}:Q"])
    return _apart(_panels(shown, frame, ["panel", "layer"]), "x", "y")


def _steps(base: alt.Chart, frame: pd.DataFrame, told: list[str]) -> Chart:
    """A line from step to step of each run, and the steps' numbers; the final model is the larger point."""
    frame["last"] = frame["step"] == frame.groupby("run")["step"].transform("max")
    final = "datum.last"
    line = base.mark_line(strokeWidth=1.2, opacity=0.7).encode(order="step:Q", detail="run:N")
    size = alt.condition(final, alt.value(80), alt.value(28))
    points = base.mark_point(filled=True, opacity=0.9).encode(size=size, shape=_shapes(frame), tooltip=told)
    numbers = base.mark_text(dx=7, dy=-6, fontSize=9).encode(text="step:O")
    return line + points + numbers


def _methods(frame: pd.DataFrame) -> alt.Color:
    names = list(dict.fromkeys(frame["method"]))
    scale = alt.Scale(domain=names, range=[colour(k) for k in range(len(names))])
    return alt.Color("method:N", scale=scale, legend=alt.Legend(title=None, symbolStrokeWidth=2))


def _shapes(frame: pd.DataFrame) -> alt.Shape:
    """Shapes that tell methods apart once the colours are used up."""
    names = list(dict.fromkeys(frame["method"]))
    shapes = [SHAPES[k // len(COLOURS) % len(SHAPES)] for k in range(len(names))]
    return alt.Shape("method:N", scale=alt.Scale(domain=names, range=shapes))


def _dashes(frame: pd.DataFrame) -> alt.StrokeDash:
    names = list(dict.fromkeys(frame["method"]))
    return alt.StrokeDash("method:N", scale=alt.Scale(domain=names, range=[dash(k) for k in range(len(names))]))


def _panels(chart: Chart, frame: pd.DataFrame, by: list[str]) -> Chart:
    """One chart for each value of these columns; what is the same everywhere is not repeated."""
    varying = [name for name in by if frame[name].nunique() > 1]
    if not varying:
        return chart.properties(data=_data(frame), title=str(frame[by[0]].iloc[0]))
    order = {name: list(dict.fromkeys(frame[name])) for name in varying}
    if len(varying) == 1:
        [(name, sort)] = order.items()
        title = "" if name == by[0] else str(frame[by[0]].iloc[0])
        facet = alt.Facet(f"{name}:N", title=None, sort=sort)
        return chart.facet(facet=facet, columns=3, data=_data(frame)).properties(title=title)
    down, across = varying
    row = alt.Row(f"{down}:N", title=None, sort=order[down])
    column = alt.Column(f"{across}:N", title=None, sort=order[across])
    return chart.facet(row=row, column=column, data=_data(frame))


def _apart(chart: Chart, *scales: str) -> Chart:
    """Every panel with scales of its own."""
    own: Any = dict.fromkeys(scales, "independent")
    return chart.resolve_scale(**own) if isinstance(chart, alt.FacetChart) else chart


def _data(frame: pd.DataFrame) -> alt.Data:
    """The rows themselves: altair refuses tables of more than 5,000."""
    return alt.Data(values=json.loads(frame.to_json(orient="records")))


def finished(chart: Any, notes: list[str]) -> Chart:
    """Dark on white, in one style, with what was left out beneath the title."""
    text = {"labelColor": TEXT, "titleColor": TEXT, "labelFontSize": 10, "titleFontSize": 11}
    if notes:
        title, *more = [chart.title, *notes] if isinstance(chart.title, str) and chart.title else notes
        chart = chart.properties(title=alt.Title(title, subtitle=more))
    plain = chart.configure(background="white", font="sans-serif").configure_view(stroke=PALE)
    plain = plain.configure_axis(
        **text, titleFontWeight="normal", domainColor=PALE, gridColor="#F0F0F0", tickColor=PALE
    )
    plain = plain.configure_title(fontSize=12, fontWeight="normal", anchor="start", color=TEXT, subtitleFontSize=10)
    return plain.configure_legend(**text).configure_header(labelColor=TEXT, labelFontSize=11)


FIGURES = {
    "examples": Figure(landscape.examples, examples),
    "path": Figure(landscape.path, path),
    "weights": Figure(landscape.weights, weights),
    "svcca": Figure(landscape.similarity, similarity),
    "adjacent": Figure(landscape.adjacent, adjacent),
    "models-over-time": Figure(landscape.over_time, over_time),
}
