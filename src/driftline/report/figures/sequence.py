"""The figures of a sequence: examples, paths, projections, similarities, strengths and a map, drawn."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from driftline.report.figures.axes import SIZE, TEXT, Chart, apart, dashes, methods, panels, shapes
from driftline.report.figures.landscape import SHARES

PICTURE = 56


def examples(frame: pd.DataFrame) -> Chart:
    """A row of pictures per step, a column per class, the label under each."""
    times = list(dict.fromkeys(frame["time"]))
    x = alt.X("column:O", axis=None)
    y = alt.Y("time:N", sort=times, axis=alt.Axis(title=None, domain=False, ticks=False, labelLimit=260))
    down, across = (int(frame.groupby("panel")[name].nunique().max()) for name in ("time", "column"))
    base = alt.Chart(width=(PICTURE + 8) * across, height=(PICTURE + 22) * down).encode(x=x, y=y)
    pictures = base.mark_image(width=PICTURE, height=PICTURE, yOffset=-6, aria=False).encode(url="picture:N")
    labels = base.mark_text(dy=PICTURE // 2 + 3, fontSize=9, color=TEXT, limit=PICTURE + 6).encode(text="label:N")
    return apart(panels(pictures + labels, frame, ["panel"]), "y")


def path(frame: pd.DataFrame) -> Chart:
    """Accuracy along s; circles where the networks as they are come to."""
    x = alt.X("s:Q", axis=alt.Axis(title="s: 0 before the last step, 1 after it", tickCount=5))
    y = alt.Y(
        "accuracy:Q", scale=alt.Scale(zero=False), axis=alt.Axis(title="accuracy at the final step", format=".0%")
    )
    base = alt.Chart(width=1.4 * SIZE, height=SIZE).encode(
        x=x, y=y, color=methods(frame), detail="run:N", tooltip=["method:N", "seed:O", "s:Q", "accuracy:Q", "n:Q"]
    )
    line = base.mark_line(strokeWidth=1.8).encode(strokeDash=dashes(frame))
    ends = base.mark_point(filled=False, size=45, opacity=1).encode(shape=shapes(frame))
    ends = ends.transform_filter("datum.statistics == 'own'")
    return panels(line.transform_filter("datum.statistics != 'own'") + ends, frame, ["panel"])


def weights(frame: pd.DataFrame) -> Chart:
    """Two projections per layer; the cross at 0 is the oracle."""
    return _trails(frame, "historical", "final", "along d_H: ERM on history", "along d_T: few final samples", 0.0)


def similarity(frame: pd.DataFrame) -> Chart:
    """Two similarities per layer; the cross at 1 is the oracle."""
    half, most = (f"SVCCA with the oracle, share {share:g}" for share in SHARES)
    return _trails(frame, "half", "most", half, most, 1.0)


def adjacent(frame: pd.DataFrame) -> Chart:
    """A point per trial, a line through the best of each strength; dashed lines for models that are not joint."""
    base = alt.Chart(width=1.4 * SIZE, height=SIZE)
    x = alt.X("strength:O", axis=alt.Axis(title="strength of adjacent regularisation", labelAngle=0))
    y = alt.Y("score:Q", scale=alt.Scale(zero=False), axis=alt.Axis(title="validation accuracy", format=".0%"))
    told = ["method:N", "seed:O", "score:Q", "lr:Q", "weight_decay:Q", "dropout:Q", "strength:Q"]
    tied = base.transform_filter("isValid(datum.strength)").encode(x=x, color=methods(frame))
    points = tied.mark_point(filled=True, opacity=0.6).encode(y=y, tooltip=told)
    best = tied.mark_line(strokeWidth=1.8).encode(y=alt.Y("max(score):Q"), detail="run:N")
    rules = base.transform_filter("!isValid(datum.strength)").mark_rule(strokeDash=[5, 3])
    return panels(best + points + rules.encode(y=y, color=methods(frame), tooltip=told), frame, ["panel"])


def over_time(frame: pd.DataFrame) -> Chart:
    """A map on which one unit is the same in both directions; numbers are steps."""
    far = 1.15 * float(np.abs(frame[["x", "y"]].to_numpy()).max()) or 1.0
    scale = alt.Scale(domain=[-far, far], nice=False)
    axis = alt.Axis(title=None, labels=False, ticks=False)
    base = alt.Chart(width=1.5 * SIZE, height=1.5 * SIZE).encode(
        x=alt.X("x:Q", scale=scale, axis=axis), y=alt.Y("y:Q", scale=scale, axis=axis), color=methods(frame)
    )
    told = ["method:N", "step:O", "accuracy:Q", "explained:Q", "stress:Q"]
    held = [
        f"{panel}, seed {seed}: two axes hold {share:.0%} of the spread"
        for panel, seed, share in zip(frame["panel"], frame["seed"], frame["explained"], strict=True)
    ]
    return panels(_steps(base, frame, told), frame.assign(map=held), ["map"])


def _trails(frame: pd.DataFrame, x: str, y: str, x_title: str, y_title: str, oracle: float) -> Chart:
    """Models by step, a panel per layer, and a cross where the oracle is."""
    base = alt.Chart(width=SIZE, height=SIZE).encode(
        x=alt.X(f"{x}:Q", scale=alt.Scale(zero=False), axis=alt.Axis(title=x_title, tickCount=5)),
        y=alt.Y(f"{y}:Q", scale=alt.Scale(zero=False), axis=alt.Axis(title=y_title, tickCount=5)),
        color=methods(frame),
    )
    here = alt.datum(oracle)
    cross = alt.Chart().mark_point(shape="cross", angle=45, size=90, color=TEXT, filled=True)
    shown = cross.encode(x=here, y=here) + _steps(base, frame, ["method:N", "seed:O", "step:O", f"{x}:Q", f"{y}:Q"])
    return apart(panels(shown, frame, ["panel", "layer"]), "x", "y")


def _steps(base: alt.Chart, frame: pd.DataFrame, told: list[str]) -> Chart:
    """A line from step to step of each run, and the steps' numbers; the final model is the larger point."""
    frame["last"] = frame["step"] == frame.groupby("run")["step"].transform("max")
    final = "datum.last"
    line = base.mark_line(strokeWidth=1.2, opacity=0.7).encode(order="step:Q", detail="run:N")
    size = alt.condition(final, alt.value(80), alt.value(28))
    points = base.mark_point(filled=True, opacity=0.9).encode(size=size, shape=shapes(frame), tooltip=told)
    numbers = base.mark_text(dx=7, dy=-6, fontSize=9).encode(text="step:O")
    return line + points + numbers
