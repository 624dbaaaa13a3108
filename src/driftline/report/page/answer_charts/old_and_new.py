"""Old against new over time: the first model of a method, and its own model of each time."""

from __future__ import annotations

import re
from collections.abc import Sequence

import altair as alt

from driftline.benchmarks.answer import OldAndNew
from driftline.report.analysis.curves import Series, cells_by_method, time_names
from driftline.report.analysis.summary import Results
from driftline.report.page.answer_charts.scene import WIDE, Scene, Span, base, percent, score_text, tooltips, y_axis
from driftline.report.page.labels import EndLabel, end_labels
from driftline.report.page.look import INK, NEW, OLD, look, named_axis, time_ticks
from driftline.types import JsonObject, JsonRow

ROOM = 112  # pixels right of the lines for their names
FIELDS = ["line", "at", "time", "value", "low", "high", "score", "n", "seeds"]


def draw(scene: Scene, chart: OldAndNew) -> JsonObject | None:
    """Return the chart; None if the record has no model that is tested at several times."""
    cells = cells_by_method(scene.table.group, chart.metric).get(chart.method)
    if cells is None:
        return None
    times = time_names(scene.table.group)
    rows = {(row["time"], row["tau"]): row for row in cells.records()}
    first = next((time for time in times if (time, time) in rows), None)
    names = line_names(scene, chart)
    lines = {
        line: [
            _row(names[line], k, time, rows[key])
            for k, time in enumerate(times)
            if (key := (time if line == "new" else first, time)) in rows
        ]
        for line in names
    }
    if len(lines.get("old", [])) < 2:
        return None
    span = Span.around([value for points in lines.values() for row in points for value in row[3:6]])
    last = max(row[1] for points in lines.values() for row in points)
    end = alt.ExprRef(f"width > {WIDE} ? {last} * width / (width - {ROOM}) : {last}.15")
    x = alt.X(
        "at:Q",
        scale=alt.Scale(domainMin=-0.15, domainMax=end, nice=False, zero=False),
        axis=named_axis(time_ticks(times, times), axis_name(times, chart.unit)),
    )
    layers, labels = [], []
    for line, color in (("old", OLD), ("new", NEW)):
        plot = base(scene.charts.add_data(Series(FIELDS, lines[line])), scene.height).encode(x=x)
        layers += _line(plot, color, span, chart.unit)
        labels.append(EndLabel(lines[line][-1][3], names[line], color, lines[line][-1][1]))
    layers += [*_gap(chart, lines, x), *end_labels(labels, (span.low, span.high), scene.height, WIDE)]
    return look(alt.layer(*layers), scene.answer.text)


def line_names(scene: Scene, chart: OldAndNew) -> dict[str, str]:
    """Return the names of both lines by the color of their role; none if no model is tested later."""
    grid = Results(scene.table).grid(chart.metric, chart.method)
    first = next((time for time in time_names(scene.table.group) if (time, time) in grid), "")
    if not any(time == first != tau for time, tau in grid):
        return {}
    return {"new": "kept up to date", "old": f"left alone since {since(first, chart.unit)}"}


def _line(plot: alt.Chart, color: str, span: Span, unit: str) -> list[alt.Chart]:
    """Return a line with its interval and its points."""
    return [
        plot.mark_area(color=color, opacity=0.12).encode(y=y_axis("low", span), y2="high:Q"),
        plot.mark_line(color=color, strokeWidth=2.2, strokeJoin="round").encode(y=y_axis("value", span)),
        plot.mark_point(color=color, filled=True, size=46, opacity=1).encode(
            y=y_axis("value", span), tooltip=tooltips(*TOOLTIP, ("time", unit))
        ),
    ]


TOOLTIP = (("line", "model"), ("score", "accuracy"), ("n", "test answers"), ("seeds", "seeds"))


def _row(line: str, at: int, time: str, cell: JsonObject) -> JsonRow:
    ends = [percent(cell[name]) for name in ("value", "low", "high")]
    return [line, at, time, *ends, score_text(cell["value"], cell["low"], cell["high"]), cell["n"], cell["seeds"]]


def since(time: str, unit: str = "period") -> str:
    """Return a time as part of a sentence.

    >>> since("1930s"), since("2014"), since("0")
    ('the 1930s', '2014', 'period 0')
    """
    if re.fullmatch(r"\d{1,3}", time):
        return f"{unit} {time}"
    return f"the {time}" if time.endswith("0s") else time


def axis_name(times: Sequence[str], unit: str = "period") -> str | None:
    """Return the name of an axis of times, which only numbers need."""
    return unit if all(re.fullmatch(r"\d{1,3}", time) for time in times) else None


def _gap(chart: OldAndNew, lines: dict[str, list[JsonRow]], x: alt.X) -> list[alt.Chart]:
    """Return a line between both models at the time of the largest certain difference, with its size."""
    ends = {line: next((row for row in rows if row[2] == chart.gap_at), None) for line, rows in lines.items()}
    if ends["old"] is None or ends["new"] is None:
        return []
    low, high, at = ends["old"][3], ends["new"][3], ends["new"][1]
    right = at > 0.75 * len(lines["new"]) or at == lines["old"][-1][1]  # the name of the old line is right of its end
    row = {"at": at, "low": low, "high": high, "middle": (low + high) / 2, "text": f"{high - low:.0f} points"}
    plot = alt.Chart(alt.Data(values=[row]), width="container").encode(x=x)
    return [
        plot.mark_rule(color=INK, strokeWidth=1.4).encode(y="low:Q", y2="high:Q"),
        plot.mark_text(color=INK, fontWeight=600, align="right" if right else "left", dx=-7 if right else 7).encode(
            y="middle:Q", text="text:N"
        ),
    ]
