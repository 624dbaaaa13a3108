"""Figure `transfer`: g(t, tau) as a heat map per method."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pandas as pd

from driftline.report.analysis.groups import Group
from driftline.report.figures.accuracy import Accuracy
from driftline.report.figures.axes import Chart, inline_data
from driftline.report.figures.base import Row, figure
from driftline.report.figures.heat_map import heat_maps, transfer_map


@figure("transfer")
@dataclass(frozen=True)
class Transfer(Accuracy):
    """Transfer ratio g(t, τ): accuracy relative to the model of τ; white at δ, blue where a model is still valid."""

    metric = "ttr"

    def rows(self, group: Group) -> Iterable[Row]:
        return ({**row, "delta": group.options["delta"]} for row in super().rows(group))

    def chart(self, frame: pd.DataFrame) -> Chart:
        return heat_maps(
            frame,
            lambda part, times, ends: transfer_map(inline_data(part), times, ends[0], float(part["delta"].iloc[0])),
        )
