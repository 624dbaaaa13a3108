"""Figure `accuracy`: A(t, tau) as a heat map per method."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from driftline.record.run import Record
from driftline.report.analysis.curves import time_names
from driftline.report.analysis.groups import Group
from driftline.report.figures.axes import Chart, inline_data
from driftline.report.figures.base import Figure, Row, figure
from driftline.report.figures.heat_map import accuracy_map, heat_map_rows, heat_maps


@figure("accuracy")
@dataclass(frozen=True)
class Accuracy(Figure):
    """Accuracy A(t, τ) of the model trained at t, tested at τ: a heat map per method."""

    missing = "no model that is tested in later periods"
    metric = "accuracy"

    def table(self, record: Record, data_dir: Path | None = None) -> pd.DataFrame:
        frame = super().table(record, data_dir)
        frame.attrs["times"] = {group.title: time_names(group) for group in self.groups(record)}
        return frame

    def rows(self, group: Group) -> Iterable[Row]:
        return heat_map_rows(group, self.metric)

    def chart(self, frame: pd.DataFrame) -> Chart:
        return heat_maps(frame, lambda part, times, ends: accuracy_map(inline_data(part), times, ends))
