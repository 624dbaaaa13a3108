"""Figure `weight-path`: accuracy between the network before the last step and the final one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import altair as alt
import numpy as np
import pandas as pd
from pydantic import Field

from driftline.report.figures.axes import SIZE, Chart, method_color, method_dash, method_shape, panels
from driftline.report.figures.base import Row, figure, option
from driftline.report.figures.reloaded import LeftOut, NetworkFigure

if TYPE_CHECKING:
    from driftline.engine.reload import ReloadedRun


@figure("weight-path", benchmarks=("seq-to-final",))
@dataclass(frozen=True)
class WeightPath(NetworkFigure):
    """Accuracy along the line from the weights before the last step (s = 0) to the final ones (s = 1).

    `statistics` is "own" in the rows of the two networks themselves.
    """

    points: Annotated[int, Field(ge=2)] = option(21, "Number of points, ends included.")
    batch_norm: Literal["re-estimated", "interpolated"] = option(
        "re-estimated", "Batch-norm statistics: re-estimated on the last step, or interpolated."
    )

    def network_rows(self, visit: ReloadedRun) -> Iterable[Row]:
        from driftline.training.interpolation import interpolate, reestimate_batch_norm

        if len(visit.snapshots) < 2:
            raise LeftOut("no model before the last step")
        before, after = (snapshot.network for snapshot in visit.snapshots[-2:])
        train, n = visit.last_round.train_x, len(visit.test)
        for s, network in ((0.0, before), (1.0, after)):
            yield {"s": s, "statistics": "own", "accuracy": visit.accuracy(network), "n": n}
        for s in np.linspace(0, 1, self.points).tolist():
            network, moved = interpolate(before, after, s)
            if self.batch_norm == "re-estimated":
                reestimate_batch_norm(network, moved, train, visit.selection.batch)
            yield {"s": s, "statistics": self.batch_norm, "accuracy": visit.accuracy(network), "n": n}

    def chart(self, frame: pd.DataFrame) -> Chart:
        x = alt.X("s:Q", axis=alt.Axis(title="s: 0 before the last step, 1 after it", tickCount=5))
        axis = alt.Axis(title="accuracy at the final step", format=".0%")
        y = alt.Y("accuracy:Q", scale=alt.Scale(zero=False), axis=axis)
        tooltip = ["method:N", "seed:O", "s:Q", "accuracy:Q", "n:Q"]
        base = alt.Chart(width=1.4 * SIZE, height=SIZE).encode(
            x=x, y=y, color=method_color(frame), detail=alt.Detail("run:N"), tooltip=tooltip
        )
        line = base.mark_line(strokeWidth=1.8).encode(strokeDash=method_dash(frame))
        ends = base.mark_point(filled=False, size=45, opacity=1).encode(shape=method_shape(frame))
        ends = ends.transform_filter("datum.statistics == 'own'")
        return panels(line.transform_filter("datum.statistics != 'own'") + ends, frame, ["panel"])
