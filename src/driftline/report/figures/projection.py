"""Figure `projection`: features of held-out samples in two dimensions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import altair as alt
import pandas as pd

from driftline.report.analysis.groups import Group
from driftline.report.analysis.projection import project_features
from driftline.report.figures.axes import Chart, Data, inline_data, method_scale, names
from driftline.report.figures.base import Figure, Row, figure
from driftline.report.figures.palette import shape


@figure("projection")
@dataclass(frozen=True)
class Projection(Figure):
    """Features of held-out samples in two dimensions, by ranges of time: UMAP if it is installed, else PCA."""

    missing = "no features were recorded"

    def rows(self, group: Group) -> Iterable[Row]:
        for method in group.methods:
            points, projection = project_features(group, method)
            shared = {"method": method, "seed": group.runs_of(method)[0].seed, "projection": projection}
            yield from ({**shared, **row} for row in points.records())

    def chart(self, frame: pd.DataFrame) -> Chart:
        classes, rows = sorted(set(frame["class"])), []
        for (panel, method, seed, how), part in frame.groupby(["panel", "method", "seed", "projection"], sort=False):
            title = f"{panel}: {method}, seed {seed}, {how} of {len(part):,} held-out samples"
            rows.append(scatter(inline_data(part), names(part, "stretch"), classes).properties(title=title))
        return rows[0] if len(rows) == 1 else alt.vconcat(*rows)


def scatter(data: Data, stretches: Sequence[str], classes: Sequence[str]) -> alt.Chart:
    """Return a panel of points for each range of time, a color per class."""
    legend = alt.Legend(title="class", orient="top")
    chart: alt.Chart = (
        alt.Chart(data, width=120, height=120, description="Features by range of time and class")
        .mark_point(filled=True, size=16, opacity=0.75)
        .encode(
            x=alt.X("x:Q", axis=None),
            y=alt.Y("y:Q", axis=None),
            color=alt.Color("class:N", scale=method_scale(classes), legend=legend),
            shape=alt.Shape("class:N", scale=method_scale(classes, shape), legend=legend),
            tooltip=[alt.Tooltip("stretch:N", title="time"), alt.Tooltip("class:N")],
            facet=alt.Facet("stretch:N", columns=4, sort=list(stretches), title=None),
        )
    )
    return chart
