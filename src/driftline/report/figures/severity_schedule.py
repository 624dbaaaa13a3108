"""Figure `severity-schedule`: severities of corruptions over time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated

import altair as alt
import pandas as pd
from pydantic import Field

from driftline.record.run import Run
from driftline.report.analysis.groups import Group
from driftline.report.figures.axes import SIZE, TEXT, Chart, inline_data, method_scale, names
from driftline.report.figures.base import Figure, Row, figure, option
from driftline.report.figures.palette import dash
from driftline.streams.test_time import schedule as orders


@figure("severity-schedule", benchmarks=("test-time",))
@dataclass(frozen=True)
class SeveritySchedule(Figure):
    """Severities over time in the stream of the lowest seed, and the accuracy of the frozen model under them."""

    points: Annotated[int, Field(ge=2)] = option(100, "Number of points of the stream, from its start.")
    missing = "no stream of corrupted images in an order"

    def fits(self, group: Group) -> bool:
        schedule = group.card.protocol.get("schedule")
        return super().fits(group) and schedule is not None and not schedule["mixed"]

    def rows(self, group: Group) -> Iterable[Row]:
        run = min(group.runs, key=lambda run: run.seed)
        frozen = [one for one in group.runs if (group.labels[one.key], one.seed) == (group.baseline, run.seed)]
        for row in [*_severities(run, self.points), *_frozen_accuracy(frozen, self.points)]:
            yield {"panel": f"{group.title}, seed {run.seed}", **row}

    def chart(self, frame: pd.DataFrame) -> Chart:
        corruptions = names(frame[frame["what"] == "severity"], "name")
        placed = []
        for panel, part in frame.groupby("panel", sort=False):
            ends = alt.Scale(domain=[int(part["time"].min()), int(part["until"].max())], nice=False)
            x = alt.X("time:Q", scale=ends, axis=alt.Axis(title="images seen", tickCount=6, format=",d"))
            severity, accuracy = (part[part["what"] == what] for what in ("severity", "accuracy"))
            placed.append(_severity_chart(severity, x, corruptions).properties(title=str(panel)))
            if not accuracy.empty:
                base = alt.Chart(inline_data(accuracy), width=2.6 * SIZE, height=0.4 * SIZE)
                y = alt.Y("value:Q", axis=alt.Axis(title="accuracy of frozen", format=".0%", tickCount=4))
                placed.append(base.mark_rule(color=TEXT, strokeWidth=2).encode(x=x, x2=alt.X2("until:Q"), y=y))
        return alt.vconcat(*placed)


def _severity_chart(frame: pd.DataFrame, x: alt.X, corruptions: list[str]) -> Chart:
    legend = alt.Legend(title=None, columns=2, symbolLimit=0)
    return (
        alt.Chart(inline_data(frame), width=2.6 * SIZE, height=0.6 * SIZE)
        .mark_rule(strokeWidth=3)
        .encode(
            x=x,
            x2=alt.X2("until:Q"),
            y=alt.Y("value:Q", axis=alt.Axis(title="severity")),
            color=alt.Color("name:N", scale=method_scale(corruptions), legend=legend),
            strokeDash=alt.StrokeDash("name:N", scale=method_scale(corruptions, dash), legend=legend),
        )
    )


def _severities(run: Run, points: int) -> Iterator[Row]:
    options = run.card.run.options
    schedule = orders.Schedule.from_card(run.card.protocol["schedule"])
    images, images_per_point = options["images"], options["images_per_point"]
    for number in range(min(points, -(-images // images_per_point))):
        point, start, end = (
            schedule.point(number),
            number * images_per_point,
            min((number + 1) * images_per_point, images),
        )
        for name, value in ((point.first, point.s1), (point.second, point.s2)):
            if name:
                place = {"time": start, "until": end}
                yield {"what": "severity", "name": name, **place, "value": value, "n": end - start}


def _frozen_accuracy(runs: list[Run], points: int) -> Iterator[Row]:
    for run in runs:
        options, answers = run.card.run.options, run.table("answers")
        if answers.empty or "group" not in answers:
            continue
        images_per_point, whole = (
            options["images_per_point"],
            options["images"] // options["images_per_point"],
        )  # the last point may be incomplete
        found = answers[answers["group"] < min(points, whole)].groupby("group")["correct"].agg(["mean", "size"])
        for number, accuracy, n in zip(found.index, found["mean"], found["size"], strict=True):
            place = {"time": int(number) * images_per_point, "until": (int(number) + 1) * images_per_point}
            yield {"what": "accuracy", "name": "frozen", **place, "value": float(accuracy), "n": int(n)}
