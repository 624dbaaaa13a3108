"""Figure `class-frequencies`: samples per class, and classes met over time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import altair as alt
import numpy as np
import pandas as pd

from driftline.metrics.openworld import n_classes_seen
from driftline.record.run import Run
from driftline.report.analysis.groups import Group
from driftline.report.figures.axes import SIZE, Chart, inline_data, method_scale, one_below_another
from driftline.report.figures.base import Figure, Row, figure
from driftline.report.figures.palette import NEUTRAL

MAX_POINTS = 200


@figure("class-frequencies", benchmarks=("open-world",))
@dataclass(frozen=True)
class ClassFrequencies(Figure):
    """Number of samples of each class by rank, and number of classes met over time, for each seed."""

    missing = "no stream with new classes"

    def rows(self, group: Group) -> Iterable[Row]:
        for run in {run.seed: run for run in group.runs}.values():  # all methods meet the same stream
            shared = {"seed": run.seed, "head": run.card.protocol["head"]}
            yield from ({**shared, **row} for row in _counts(run))

    def chart(self, frame: pd.DataFrame) -> Chart:
        def panel(part: pd.DataFrame) -> Chart:
            ranks, met = (part[part["what"] == what] for what in ("samples of a class", "classes met"))
            boundary = alt.Chart().mark_rule(strokeDash=[4, 3], color=NEUTRAL)
            counts = _line(ranks, "rank of a class", "samples of the class", alt.Scale(type="log", nice=False))
            head = boundary.encode(y=alt.datum(max(1, int(part["head"].iloc[0]))))  # a log scale has no 0
            return alt.hconcat(counts + head, _line(met, "samples seen", "classes met", alt.Scale()))

        return one_below_another(frame, panel)


def _counts(run: Run) -> Iterator[Row]:
    labels = run.table("answers")["truth"].to_numpy()
    counts = np.sort(np.unique(labels, return_counts=True)[1])[::-1]
    yield from ({"what": "samples of a class", "at": k, "value": int(n)} for k, n in enumerate(counts, 1))
    met = n_classes_seen(labels)
    places = np.unique(np.linspace(0, len(labels) - 1, MAX_POINTS).astype(int))
    yield from ({"what": "classes met", "at": int(k) + 1, "value": int(met[k])} for k in places)


def _line(part: pd.DataFrame, across: str, up: str, scale: alt.Scale) -> Chart:
    base = alt.Chart(inline_data(part), width=1.3 * SIZE, height=SIZE)
    return base.mark_line(strokeWidth=1.8).encode(
        x=alt.X("at:Q", axis=alt.Axis(title=across, tickCount=5, format=",d")),
        y=alt.Y("value:Q", axis=alt.Axis(title=up, tickCount=5), scale=scale),
        color=alt.Color("seed:N", scale=method_scale(sorted(set(part["seed"]))), legend=alt.Legend(title="seed")),
        tooltip=["seed:N", "at:Q", "value:Q"],
    )
