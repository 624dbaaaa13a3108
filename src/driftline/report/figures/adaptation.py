"""The figures of `test-time`: leads over the frozen model, growth, severities and sweeps, drawn."""

from __future__ import annotations

import math
from typing import Any

import altair as alt
import pandas as pd

from driftline.report.figures import charts
from driftline.report.figures.axes import SIZE, TEXT, Chart, apart, dashes, methods, panels, rows_of
from driftline.report.figures.tracks import room, track
from driftline.report.format import format_images

ACROSS = 3
SIDES = (("_from", -1), ("_to", 1))
POINTS = "format(100 * datum.value, '+.0f')"
SUMMARY = ("gain in points", "collapsed", "behind from", "deepest", "adapted by")


def collapse(frame: pd.DataFrame) -> Chart:
    """A line per method, the frozen model at 0; beside it what the lines come to."""
    names = list(dict.fromkeys(frame["method"]))
    rows = []
    for panel, part in frame.groupby("panel", sort=False):
        lines = track(rows_of(part), names, "points above frozen", room(part), labels=POINTS)
        zero = alt.Chart().mark_rule(strokeDash=[4, 3], color=charts.NEUTRAL).encode(y=alt.datum(0))
        drawn = (zero + lines).properties(width=1.6 * SIZE, height=SIZE)
        rows.append(alt.hconcat(drawn, _table(part)).properties(title=str(panel)))
    return rows[0] if len(rows) == 1 else alt.vconcat(*rows)


def _table(part: pd.DataFrame) -> Chart:
    """The numbers of each method as text."""
    cells = []
    for method, rows in part.groupby("method", sort=False):
        texts = _texts(rows.iloc[0])
        cells += [{"method": method, "column": name, "text": text} for name, text in zip(SUMMARY, texts, strict=True)]
    order = list(dict.fromkeys(part["method"]))
    axis: dict[str, Any] = {"title": None, "ticks": False, "domain": False, "grid": False}
    x = alt.X("column:N", sort=list(SUMMARY), axis=alt.Axis(**axis, orient="top", labelAngle=0, labelLimit=130))
    y = alt.Y("method:N", sort=order, axis=alt.Axis(**axis, labelLimit=220))
    base = alt.Chart(rows_of(pd.DataFrame(cells)), width=alt.Step(112), height=alt.Step(22))
    return base.mark_text(fontSize=10, color=TEXT).encode(x=x, y=y, text="text:N")


def _texts(row: pd.Series[Any]) -> list[str]:
    seeds = int(row["seeds"])
    gain = f"{100 * row['gain']:+.1f}"
    if not math.isnan(row["gain_low"]):
        gain += f" [{100 * row['gain_low']:+.1f}, {100 * row['gain_high']:+.1f}]"
    return [
        gain,
        f"{int(row['collapsed'])} of {seeds} seed{'' if seeds == 1 else 's'}",
        f"{format_images(row['since'])} ({int(row['behind'])} of {seeds})" if row["behind"] else format_images(None),
        f"{100 * row['depth']:.1f}",
        format_images(row["adapted"]),
    ]


def growth(frame: pd.DataFrame) -> Chart:
    """A chart for each number that methods showed, a line per method."""
    names = list(dict.fromkeys(frame["method"]))
    rows = []
    for panel, of_panel in frame.groupby("panel", sort=False):
        placed = [
            track(rows_of(part), names, str(gauge), room(part)).properties(width=1.2 * SIZE, height=0.7 * SIZE)
            for gauge, part in of_panel.groupby("gauge", sort=False)
        ]
        rows.append(alt.concat(*placed, columns=ACROSS).properties(title=str(panel)))
    return rows[0] if len(rows) == 1 else alt.vconcat(*rows)


def severities(frame: pd.DataFrame) -> Chart:
    """The darker, the more often a model is right; a line for each path."""
    first, second = (str(frame[name].iloc[0]) for name in ("first", "second"))
    axes = [alt.Axis(title=f"severity of {name}", values=[0, 1, 2, 3, 4, 5], grid=False) for name in (second, first)]
    step = 5 / (frame["s1"].nunique() - 1)
    scale = alt.Scale(domain=[-step / 2, 5 + step / 2], nice=False)
    cells = frame[frame["target"].isna()]
    ends = {f"{name}{side}": cells[name] + sign * step / 2 for name in ("s1", "s2") for side, sign in SIDES}
    squares = alt.Chart(rows_of(cells.assign(**ends))).mark_rect()
    squares = squares.encode(
        x=alt.X("s2_from:Q", scale=scale, axis=axes[0]),
        x2="s2_to:Q",
        y=alt.Y("s1_from:Q", scale=scale, axis=axes[1]),
        y2="s1_to:Q",
        color=alt.Color("accuracy:Q", scale=alt.Scale(scheme="greys"), legend=alt.Legend(title="accuracy, %")),
    )
    walked = frame[frame["target"].notna()]
    names = [f"{target:g}%" for target in dict.fromkeys(walked["target"])]
    colours = alt.Scale(domain=names, range=[charts.colour(k) for k in range(len(names))])
    paths = alt.Chart(rows_of(walked.assign(path=[f"{target:g}%" for target in walked["target"]])))
    lines = paths.mark_line(point=True, strokeWidth=2.5).encode(
        x="s2:Q",
        y="s1:Q",
        order="place:Q",
        color=alt.Color("path:N", scale=colours, legend=alt.Legend(title="target")),
    )
    drawn = (squares + lines).resolve_scale(color="independent")
    return drawn.properties(width=1.6 * SIZE, height=1.6 * SIZE, title=f"{first}, then {second}")


def schedule(frame: pd.DataFrame) -> Chart:
    """Severities that fall and rise, a colour per corruption, and under them the frozen model's accuracy."""
    names = list(dict.fromkeys(frame.loc[frame["what"] == "severity", "name"]))
    colours = alt.Scale(domain=names, range=[charts.colour(k) for k in range(len(names))])
    dash = alt.Scale(domain=names, range=[charts.dash(k) for k in range(len(names))])
    legend = alt.Legend(title=None, columns=2, symbolLimit=0)
    placed = []
    for panel, part in frame.groupby("panel", sort=False):
        ends = alt.Scale(domain=[int(part["time"].min()), int(part["until"].max())], nice=False)
        x = alt.X("time:Q", scale=ends, axis=alt.Axis(title="images seen", tickCount=6, format=",d"))
        severity, right = (part[part["what"] == what] for what in ("severity", "accuracy"))
        steps = alt.Chart(rows_of(severity), width=2.6 * SIZE, height=0.6 * SIZE, title=str(panel))
        placed.append(
            steps.mark_rule(strokeWidth=3).encode(
                x=x,
                x2="until:Q",
                y=alt.Y("value:Q", axis=alt.Axis(title="severity")),
                color=alt.Color("name:N", scale=colours, legend=legend),
                strokeDash=alt.StrokeDash("name:N", scale=dash, legend=legend),
            )
        )
        if not right.empty:
            base = alt.Chart(rows_of(right), width=2.6 * SIZE, height=0.4 * SIZE)
            y = alt.Y("value:Q", axis=alt.Axis(title="accuracy of frozen", format=".0%", tickCount=4))
            placed.append(base.mark_rule(color=TEXT, strokeWidth=2).encode(x=x, x2="until:Q", y=y))
    return alt.vconcat(*placed)


def sweep(frame: pd.DataFrame) -> Chart:
    """A point per value of a setting with its interval, a line per method."""
    y = alt.Y("value:Q", scale=alt.Scale(zero=False), axis=alt.Axis(title="accuracy", format=".0%"))
    swept = list(dict.fromkeys(frame["setting"]))
    axis = alt.Axis(title=swept[0] if len(swept) == 1 else None, labelAngle=0)
    base = alt.Chart(width=1.2 * SIZE, height=0.8 * SIZE).encode(x=alt.X("at:O", axis=axis), color=methods(frame))
    told = ["method:N", "setting:N", "at:Q", "value:Q", "low:Q", "high:Q", "seeds:Q"]
    line = base.mark_line(strokeWidth=1.8).encode(y=y, strokeDash=dashes(frame))
    points = base.mark_point(filled=True, size=50, opacity=1).encode(y=y, tooltip=told)
    interval = base.mark_rule(strokeWidth=2).encode(y=alt.Y("low:Q"), y2="high:Q")
    return apart(panels(line + interval + points, frame, ["panel", "setting"]), "x")
