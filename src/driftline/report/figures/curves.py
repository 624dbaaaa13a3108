"""Figure `curves`: headline metrics over time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import altair as alt
import pandas as pd

from driftline import registry
from driftline.metrics import title
from driftline.record.run import Record
from driftline.report.analysis.curves import Series, headline_curves, time_names, time_unit
from driftline.report.analysis.groups import Group
from driftline.report.figures.axes import (
    COLUMNS,
    LEGEND,
    SIZE,
    Chart,
    curves_of_shares,
    inline_data,
    names,
    one_below_another,
    share_range,
)
from driftline.report.figures.base import Figure, Row, figure, option


@figure("curves")
@dataclass(frozen=True)
class Curves(Figure):
    """Headline metrics over time, means over seeds with intervals."""

    metric: str | None = option(None, "The metric. [default: all headline metrics that are shares]")

    averages_repeats = True

    @property
    def missing(self) -> str:
        return f"no {self.metric or 'metric'} over time"

    def table(self, record: Record, data_dir: Path | None = None) -> pd.DataFrame:
        frame = super().table(record, data_dir)
        frame.attrs["units"] = {group.title: time_unit(group) for group in self.groups(record)}
        return frame

    def rows(self, group: Group) -> Iterable[Row]:
        steps = {name: k for k, name in enumerate(time_names(group), 1)}
        headline = registry.get("benchmark", group.benchmark).headline_metrics
        for metric, series in headline_curves(group, ((self.metric, ""),) if self.metric else headline).items():
            yield from ({"metric": metric, "step": steps[row["time"]], **row} for row in series.records())

    def chart(self, frame: pd.DataFrame) -> Chart:
        methods = names(frame)

        def charts(panel: pd.DataFrame) -> Chart:
            unit = frame.attrs.get("units", {}).get(panel["panel"].iloc[0], "t")
            times = panel.drop_duplicates("step").sort_values("step")["time"].tolist()
            placed = [
                curves_of_shares(inline_data(part), times, methods, title(str(metric)), _range(part), LEGEND, unit)
                for metric, part in panel.groupby("metric", sort=False)
            ]
            return alt.concat(*(one.properties(width=1.2 * SIZE, height=0.7 * SIZE) for one in placed), columns=COLUMNS)

        if frame["metric"].nunique() > 1 or frame["panel"].nunique() == 1:
            return one_below_another(frame, charts)
        each = [charts(part).properties(title=str(panel)) for panel, part in frame.groupby("panel", sort=False)]
        return alt.concat(*each, columns=COLUMNS)


def _range(part: pd.DataFrame) -> tuple[float, float]:
    return share_range(Series(list(part.columns), part.astype(object).where(part.notna(), None).values.tolist()))
