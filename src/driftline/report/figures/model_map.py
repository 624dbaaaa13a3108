"""Figure `model-map`: a map of the models of all steps; distance is disagreement."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import altair as alt
import numpy as np
import pandas as pd

from driftline.metrics.model_similarity import disagreement_map
from driftline.record.run import Record
from driftline.report.figures.axes import SIZE, Chart, method_color, panels
from driftline.report.figures.base import Row, figure
from driftline.report.figures.reloaded import NetworkFigure, path_of_steps

if TYPE_CHECKING:
    from driftline.engine.reload import ReloadedRun


@figure("model-map", benchmarks=("seq-to-final",))
@dataclass(frozen=True)
class ModelMap(NetworkFigure):
    """Map of the models of every step; distance is disagreement on the final test set.

    One map per panel and seed, as seeds have different test sets. `explained` and `stress` measure how well two
    dimensions represent the distances.
    """

    def network_rows(self, visit: ReloadedRun) -> Iterable[Row]:
        for snapshot in visit.snapshots:
            answers = self.cached(snapshot.key, partial(visit.answers, snapshot.network))
            correct = visit.dataset.task.correct(answers, visit.test.y)
            yield {"step": snapshot.step, "answers": answers, "accuracy": float(correct.mean()), "n": len(correct)}

    def table(self, record: Record, data_dir: Path | None = None) -> pd.DataFrame:
        frame = super().table(record, data_dir)
        maps = []
        for _, models in frame.groupby(["panel", "seed"], sort=False):
            found = disagreement_map(np.stack(list(models["answers"])))
            x, y = found.points.T
            maps.append(models.assign(x=x, y=y, explained=found.explained, stress=found.stress))
        placed = pd.concat(maps, ignore_index=True).drop(columns="answers")
        placed.attrs["notes"] = frame.attrs["notes"]
        return placed

    def chart(self, frame: pd.DataFrame) -> Chart:
        far = 1.15 * float(np.abs(frame[["x", "y"]].to_numpy()).max()) or 1.0
        scale = alt.Scale(domain=[-far, far], nice=False)
        axis = alt.Axis(title=None, labels=False, ticks=False)
        base = alt.Chart(width=1.5 * SIZE, height=1.5 * SIZE).encode(
            x=alt.X("x:Q", scale=scale, axis=axis), y=alt.Y("y:Q", scale=scale, axis=axis), color=method_color(frame)
        )
        titles = [
            f"{panel}, seed {seed}: two axes hold {share:.0%} of the spread"
            for panel, seed, share in zip(frame["panel"], frame["seed"], frame["explained"], strict=True)
        ]
        tooltip = ["method:N", "step:O", "accuracy:Q", "explained:Q", "stress:Q"]
        return panels(path_of_steps(base, frame, tooltip), frame.assign(map=titles), ["map"])
