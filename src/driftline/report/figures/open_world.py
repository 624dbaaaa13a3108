"""The figures of `open-world`: accuracy over time, ROC and threshold curves, classes and prices, drawn."""

from __future__ import annotations

import altair as alt
import pandas as pd

from driftline.metrics import title
from driftline.report import charts
from driftline.report.figures.panels import SIZE, Chart, apart, dashes, methods, panels, rows_of, shapes

SIDES = ("seen", "unseen")


def rolling(frame: pd.DataFrame) -> Chart:
    """A line per method with a band for its interval."""
    base = alt.Chart(width=1.6 * SIZE, height=SIZE).encode(
        x=alt.X("time:Q", axis=alt.Axis(title="samples seen", tickCount=5, format=",d")),
        color=methods(frame).legend(charts.LEGEND),
    )
    y = alt.Y("value:Q", axis=alt.Axis(title="accuracy in a window", format=".0%", tickCount=5))
    told = ["method:N", "time:Q", "value:Q", "low:Q", "high:Q", "n:Q", "seeds:Q"]
    names = list(dict.fromkeys(frame["method"]))
    band = base.mark_area(opacity=charts.faint(names), clip=True).encode(y=alt.Y("low:Q"), y2="high:Q")
    line = base.mark_line(strokeWidth=1.8).encode(y=y, strokeDash=dashes(frame))
    points = base.mark_point(filled=True, size=18, opacity=1).encode(y=y, tooltip=told)
    return panels(band + line + points, frame, ["panel"])


def roc(frame: pd.DataFrame) -> Chart:
    """A curve per method, the diagonal of chance, a panel for each score."""
    named = frame.assign(method=[f"{m} ({a:.2f})" for m, a in zip(frame["method"], frame["auroc"], strict=True)])
    drawn = []
    for panel, of_panel in named.groupby("panel", sort=False):
        placed = [_roc(part).properties(title=str(score)) for score, part in of_panel.groupby("score", sort=False)]
        drawn.append(alt.hconcat(*placed).resolve_scale(color="independent").properties(title=str(panel)))
    return drawn[0] if len(drawn) == 1 else alt.vconcat(*drawn)


def _roc(part: pd.DataFrame) -> Chart:
    """The curves of one score; the number after a method is its AUROC."""
    share = alt.Axis(format=".0%", tickCount=5)
    lines = (
        alt.Chart(rows_of(part), width=SIZE, height=SIZE)
        .mark_line(strokeWidth=1.8)
        .encode(
            x=alt.X("false:Q", axis=share, title="seen samples called unseen"),
            y=alt.Y("true:Q", axis=share, title="unseen samples called unseen"),
            order="false:Q",
            color=methods(part),
            strokeDash=dashes(part).legend(None),
            tooltip=["method:N", "false:Q", "true:Q", "low:Q", "high:Q", "seeds:Q", "n:Q", "unseen:Q"],
        )
    )
    chance = pd.DataFrame({"false": [0, 1], "true": [0, 1]})
    diagonal = alt.Chart(rows_of(chance)).mark_line(strokeDash=[4, 3], color=charts.NEUTRAL)
    return diagonal.encode(x="false:Q", y="true:Q") + lines


def thresholds(frame: pd.DataFrame) -> Chart:
    """A panel for each method and score: seen samples accepted and unseen ones rejected, by threshold."""
    scale = alt.Scale(domain=list(SIDES), range=[charts.colour(0), charts.colour(1)])
    base = alt.Chart(width=SIZE, height=0.7 * SIZE).mark_line(strokeWidth=1.8)
    lines = base.encode(
        x=alt.X("threshold:Q", axis=alt.Axis(tickCount=5), scale=alt.Scale(zero=False, nice=False)),
        y=alt.Y("value:Q", axis=alt.Axis(title="share treated rightly", format=".0%", tickCount=5)),
        color=alt.Color("samples:N", scale=scale, legend=alt.Legend(title=None)),
        tooltip=["method:N", "samples:N", "threshold:Q", "value:Q", "seeds:Q", "n:Q"],
    )
    drawn = [
        apart(panels(lines, part, ["method", "score"]), "x").properties(title=str(panel))
        for panel, part in frame.groupby("panel", sort=False)
    ]
    return drawn[0] if len(drawn) == 1 else alt.vconcat(*drawn)


def classes(frame: pd.DataFrame) -> Chart:
    """Samples by rank of their class with the boundary of the head, and beside it the classes met over time."""
    drawn = []
    for panel, part in frame.groupby("panel", sort=False):
        ranks, met = (part[part["what"] == what] for what in ("samples of a class", "classes met"))
        boundary = alt.Chart().mark_rule(strokeDash=[4, 3], color=charts.NEUTRAL)
        log = alt.Scale(type="log", nice=False)
        counts = _line(ranks, "rank of a class", "samples of the class", log)
        both = counts + boundary.encode(y=alt.datum(max(1, int(part["head"].iloc[0]))))  # a log scale has no 0
        placed = alt.hconcat(both, _line(met, "samples seen", "classes met", alt.Scale()))
        drawn.append(placed.properties(title=str(panel)))
    return drawn[0] if len(drawn) == 1 else alt.vconcat(*drawn)


def _line(part: pd.DataFrame, across: str, up: str, scale: alt.Scale) -> Chart:
    seeds = sorted(set(part["seed"]))
    colours = alt.Scale(domain=seeds, range=[charts.colour(k) for k in range(len(seeds))])
    base = alt.Chart(rows_of(part), width=1.3 * SIZE, height=SIZE)
    return base.mark_line(strokeWidth=1.8).encode(
        x=alt.X("at:Q", axis=alt.Axis(title=across, tickCount=5, format=",d")),
        y=alt.Y("value:Q", axis=alt.Axis(title=up, tickCount=5), scale=scale),
        color=alt.Color("seed:N", scale=colours, legend=alt.Legend(title="seed")),
        tooltip=["seed:N", "at:Q", "value:Q"],
    )


def pareto(frame: pd.DataFrame) -> Chart:
    """A point per method with its interval; a step line joins those that nothing beats."""
    metric = str(frame["metric"].iloc[0])
    y = alt.Y("value:Q", scale=alt.Scale(zero=False), axis=alt.Axis(title=title(metric), format=".0%", tickCount=5))
    x = alt.X("gmac:Q", scale=alt.Scale(type="log"), axis=alt.Axis(title="GMAC", tickCount=5, format="~s"))
    base = alt.Chart(width=1.4 * SIZE, height=1.1 * SIZE).encode(x=x)
    front = base.transform_filter("datum.unbeaten").mark_line(interpolate="step-after", color=charts.NEUTRAL)
    told = ["method:N", "gmac:Q", "value:Q", "low:Q", "high:Q", "seeds:Q", "n:Q", "unbeaten:N"]
    interval = base.mark_rule(strokeWidth=1.5).encode(y=alt.Y("low:Q"), y2="high:Q", color=methods(frame))
    points = base.mark_point(filled=True, size=70, opacity=1).encode(
        y=y, color=methods(frame), shape=shapes(frame), tooltip=told
    )
    return apart(panels(front.encode(y=y) + interval + points, frame, ["panel", "compute"]), "x")
