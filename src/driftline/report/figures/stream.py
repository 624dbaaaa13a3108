"""The figures of a stream: curves, compositions, differences and gains, drawn."""

from __future__ import annotations

import altair as alt
import pandas as pd

from driftline.metrics import title
from driftline.report import charts
from driftline.report.differences import ANSWERS
from driftline.report.figures.panels import SIZE, Chart, methods, panels, rows_of
from driftline.report.series import Series

ACROSS = 3


def curves(frame: pd.DataFrame) -> Chart:
    """A chart per metric, a line per method, a band for its interval."""
    names = list(dict.fromkeys(frame["method"]))
    rows = []
    for panel, of_panel in frame.groupby("panel", sort=False):
        placed, unit = [], frame.attrs.get("units", {}).get(panel, "t")
        for metric, part in of_panel.groupby("metric", sort=False):
            times = of_panel.drop_duplicates("step").sort_values("step")["time"].tolist()
            ends = charts.span(
                Series(list(part.columns), part.astype(object).where(part.notna(), None).values.tolist())
            )
            one = charts.trend(rows_of(part), times, names, title(str(metric)), ends, charts.LEGEND, unit)
            placed.append(one.properties(width=1.2 * SIZE, height=0.7 * SIZE))
        rows.append(alt.concat(*placed, columns=ACROSS).properties(title=str(panel)))
    return rows[0] if len(rows) == 1 else alt.vconcat(*rows)


def composition(frame: pd.DataFrame) -> Chart:
    """Stacked bars: the queries of a stream and, on the same scale, the errors among them."""
    rows = []
    for panel, of_panel in frame.groupby("panel", sort=False):
        times = list(dict.fromkeys(of_panel["time"]))
        parts = of_panel.drop_duplicates("place").sort_values("place")["part"].tolist()
        most = int(of_panel.groupby(["stream", "time"])["count"].sum().max())
        placed = [
            charts.stack(rows_of(part), times, parts, most).properties(title=str(name))
            for name, part in of_panel.groupby("stream", sort=False)
        ]
        rows.append(alt.hconcat(*placed).properties(title=str(panel)))
    return rows[0] if len(rows) == 1 else alt.vconcat(*rows).resolve_scale(color="independent")


def differences(frame: pd.DataFrame) -> Chart:
    """A square of methods by methods for each span; the darker, the more they differ."""
    names = sorted(set(frame["method"]))
    what, kinds = str(frame["of"].iloc[0]), list(dict.fromkeys(frame["panel"]))
    signed = what != ANSWERS
    name = f"{title(what)}, row less column" if signed else what
    squares = charts.squares(alt.Undefined, names, frame["value"].tolist(), name, signed)
    return panels(squares, frame, ["panel", "span"]).properties(title=": ".join([name, *kinds[: len(kinds) == 1]]))


def gains(frame: pd.DataFrame) -> Chart:
    """A point per method with its interval, a panel for each kind of stream; the line is what is gained over."""
    metric, over = title(str(frame["metric"].iloc[0])), str(frame["over"].iloc[0])
    points_of = "format(100 * datum.value, '+.0f')"
    axis = alt.Axis(title=f"gain in final {metric} over {over}, points", labelExpr=points_of, tickCount=5)
    base = alt.Chart(width=SIZE, height=alt.Step(20)).encode(
        y=alt.Y("method:N", sort=list(dict.fromkeys(frame["method"])), axis=alt.Axis(title=None, labelLimit=220)),
        color=methods(frame).legend(None),
        tooltip=["method:N", "value:Q", "low:Q", "high:Q", "seeds:Q", "n:Q"],
    )
    points = base.mark_point(filled=True, size=70, opacity=1).encode(x=alt.X("value:Q", axis=axis))
    intervals = base.mark_rule(strokeWidth=2).encode(x="low:Q", x2="high:Q")
    zero = alt.Chart().mark_rule(strokeDash=[4, 3], color=charts.NEUTRAL).encode(x=alt.datum(0))
    return panels(zero + intervals + points, frame, ["panel", "stream"])
