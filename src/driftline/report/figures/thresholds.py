"""Figure `thresholds`: seen and unseen samples treated correctly, by threshold."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import altair as alt
import numpy as np
import pandas as pd

from driftline.metrics import novelty
from driftline.report.analysis.groups import Group
from driftline.report.analysis.novelty import SCORES, novelty_scores
from driftline.report.figures.axes import SIZE, Chart, independent_scales, method_scale, one_below_another, panels
from driftline.report.figures.base import Figure, Row, figure

THRESHOLDS = 100
SIDES = ("seen", "unseen")


@figure("thresholds", benchmarks=("open-world",))
@dataclass(frozen=True)
class Thresholds(Figure):
    """Share of seen samples accepted and of unseen samples rejected by threshold, means over seeds."""

    missing = "no scores for detecting new classes"

    def rows(self, group: Group) -> Iterable[Row]:
        return (row for method in group.methods for row in _curves(group, method))

    def chart(self, frame: pd.DataFrame) -> Chart:
        base = alt.Chart(width=SIZE, height=0.7 * SIZE).mark_line(strokeWidth=1.8)
        lines = base.encode(
            x=alt.X("threshold:Q", axis=alt.Axis(tickCount=5), scale=alt.Scale(zero=False, nice=False)),
            y=alt.Y("value:Q", axis=alt.Axis(title="share treated correctly", format=".0%", tickCount=5)),
            color=alt.Color("samples:N", scale=method_scale(SIDES), legend=alt.Legend(title=None)),
            tooltip=["method:N", "samples:N", "threshold:Q", "value:Q", "seeds:Q", "n:Q"],
        )
        return one_below_another(frame, lambda part: independent_scales(panels(lines, part, ["method", "score"]), "x"))


def _curves(group: Group, method: str) -> Iterable[Row]:
    for name, title in SCORES.items():
        pairs = novelty_scores(group.runs_of(method), name)
        if not pairs:
            continue
        known = np.concatenate([score[np.isfinite(score)] for score, _ in pairs])
        thresholds = np.linspace(known.min(), known.max(), THRESHOLDS)
        curves = [novelty.threshold_curves(score, new, thresholds) for score, new in pairs]
        for side in SIDES:
            shares = np.mean([getattr(curve, side) for curve in curves], axis=0)
            n = min(int((new == (side == "unseen")).sum()) for _, new in pairs)
            shared = {"method": method, "score": title, "samples": side, "seeds": len(pairs), "n": n}
            yield from ({**shared, "threshold": x, "value": y} for x, y in zip(thresholds, shares, strict=True))
