"""Figure `composition`: the clusters that the queries of a stream come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import altair as alt
import pandas as pd

from driftline.record.run import Record
from driftline.report.analysis.composition import Composition, of_file, of_group
from driftline.report.figures.axes import HEIGHT, WIDTH, Chart, Data, inline_data, names, time_axis
from driftline.report.figures.base import Figure, Row, figure, left_out_note, option, to_table
from driftline.report.figures.palette import NEUTRAL, color


@figure("composition", benchmarks=("refinement",))
@dataclass(frozen=True)
class CompositionFigure(Figure):
    """Queries of a stream, and errors of the upstream model, by step and cluster."""

    stream: Path | None = option(None, "File of a released stream, instead of runs.")
    missing = "no stream of queries"

    @property
    def needs_runs(self) -> bool:
        return self.stream is None

    def table(self, record: Record, data_dir: Path | None = None) -> pd.DataFrame:
        if self.stream is not None:
            found = of_file(self.stream, data_dir)
            total, right = int(found.queries.sum()), float(found.satisfaction[-1])
            return to_table(_rows(found), [f"the upstream model answers {right:.2%} of {total:,} queries right (CSR)"])
        rows: list[Row] = []
        left_out, unknown = [], []
        for group in self.groups(record):
            composition = of_group(group)
            if composition is None:
                left_out.append(group.title)
                continue
            rows += _rows(composition, group.title)
            unknown += [] if composition.errors is not None else [group.title]
        notes = [f"errors are not known without frozen: {title}" for title in unknown]
        return to_table(rows, [*left_out_note(self.missing, left_out), *notes])

    def chart(self, frame: pd.DataFrame) -> Chart:
        rows = []
        for panel, part in frame.groupby("panel", sort=False):
            clusters = part.drop_duplicates("place").sort_values("place")["part"].tolist()
            most = int(part.groupby(["stream", "time"])["count"].sum().max())
            bars = [
                stacked_bars(inline_data(counts), names(part, "time"), clusters, most).properties(title=str(name))
                for name, counts in part.groupby("stream", sort=False)
            ]
            rows.append(alt.hconcat(*bars).properties(title=str(panel)))
        return rows[0] if len(rows) == 1 else alt.vconcat(*rows).resolve_scale(color="independent")


def _rows(composition: Composition, group: str = "") -> list[Row]:
    panel = ", ".join(filter(None, (group, composition.title)))
    return [{"panel": panel, "stream": name, **row} for name, series in composition for row in series.records()]


def stacked_bars(data: Data, times: Sequence[str], clusters: Sequence[str], most: int | None = None) -> alt.Chart:
    """Return the number of queries by step and cluster; the first cluster is gray, `most` the end of the axis."""
    scale = alt.Scale(domain=list(clusters), range=[NEUTRAL, *(color(k) for k in range(len(clusters) - 1))])
    ends = alt.Undefined if most is None else alt.Scale(domain=[0, most])
    chart: alt.Chart = (
        alt.Chart(data, width=WIDTH, height=HEIGHT, description="Queries of each cluster by step")
        .mark_bar()
        .encode(
            x=alt.X("time:N", scale=alt.Scale(domain=list(times), paddingInner=0.1), axis=time_axis(times, "t")),
            y=alt.Y("count:Q", scale=ends, axis=alt.Axis(title="queries", tickCount=5)),
            color=alt.Color("part:N", scale=scale, legend=alt.Legend(title=None, orient="top", columns=6)),
            order=alt.Order("place:Q"),
            tooltip=[
                alt.Tooltip("time:N", title="t"),
                alt.Tooltip("part:N", title="cluster"),
                alt.Tooltip("count:Q", title="queries"),
            ],
        )
    )
    return chart
