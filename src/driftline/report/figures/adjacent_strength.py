"""Figure `adjacent-strength`: validation accuracy by the strength of adjacent regularization."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import altair as alt
import numpy as np
import pandas as pd

from driftline.errors import UserError
from driftline.record.run import Record
from driftline.report.analysis.groups import Group
from driftline.report.figures.axes import SIZE, Chart, method_color, panels
from driftline.report.figures.base import Figure, Row, figure, records
from driftline.report.figures.reloaded import run_columns

COLUMNS = ["strength", "lr", "weight_decay", "dropout", "score", "picked"]
UNTIED, FULLY_TIED = "baseline", "seq-erm"


@figure("adjacent-strength", benchmarks=("seq-to-final",))
@dataclass(frozen=True)
class AdjacentStrength(Figure):
    """Validation accuracy of every fit of joint models, by the strength that ties neighboring steps together.

    The baseline and ERM on all steps, if they were run, have no strength: they are the limits of untied and fully tied
    steps.
    """

    missing = "no joint model"

    def table(self, record: Record, data_dir: Path | None = None) -> pd.DataFrame:
        frame = super().table(record, data_dir)
        if frame["strength"].isna().all():
            raise UserError("no run of a joint model with separate layers is among these: run method jm")
        return frame

    def rows(self, group: Group) -> Iterable[Row]:
        for run in group.runs:
            fits = run.table("trials")
            if fits.empty:
                continue
            if run.card.run.method.name in (UNTIED, FULLY_TIED):
                kept = fits[fits["picked"]].assign(strength=np.nan)
            else:
                kept = fits[(fits["objective"] == "joint") & (fits["structure"] == "separate")]
            yield from ({**run_columns(group, run), **row} for row in records(kept, COLUMNS))

    def chart(self, frame: pd.DataFrame) -> Chart:
        base = alt.Chart(width=1.4 * SIZE, height=SIZE)
        x = alt.X("strength:O", axis=alt.Axis(title="strength of adjacent regularization", labelAngle=0))
        y = alt.Y("score:Q", scale=alt.Scale(zero=False), axis=alt.Axis(title="validation accuracy", format=".0%"))
        tooltip = ["method:N", "seed:O", "score:Q", "lr:Q", "weight_decay:Q", "dropout:Q", "strength:Q"]
        tied = base.transform_filter("isValid(datum.strength)").encode(x=x, color=method_color(frame))
        points = tied.mark_point(filled=True, opacity=0.6).encode(y=y, tooltip=tooltip)
        best = tied.mark_line(strokeWidth=1.8).encode(y=alt.Y("max(score):Q"), detail=alt.Detail("run:N"))
        limits = base.transform_filter("!isValid(datum.strength)").mark_rule(strokeDash=[5, 3])
        limits = limits.encode(y=y, color=method_color(frame), tooltip=tooltip)
        return panels(best + points + limits, frame, ["panel"])
