"""Figure `roc`: ROC curves of novelty scores."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import altair as alt
import numpy as np
import pandas as pd

from driftline.metrics import novelty
from driftline.metrics.confidence import t_interval_over_seeds
from driftline.report.analysis.groups import Group
from driftline.report.analysis.novelty import SCORES, novelty_scores
from driftline.report.figures.axes import SIZE, Chart, inline_data, method_color, method_dash, one_below_another
from driftline.report.figures.base import Figure, Row, figure
from driftline.report.figures.palette import NEUTRAL

CLOCK = "clock (-t)"
FALSE_POSITIVES = np.linspace(0, 1, 101)  # where curves of several seeds are averaged


@figure("roc", benchmarks=("open-world",))
@dataclass(frozen=True)
class Roc(Figure):
    """ROC curves for detecting new classes, means over seeds, and that of the clock, a score by time alone."""

    missing = "no scores for detecting new classes"

    def rows(self, group: Group) -> Iterable[Row]:
        for name, title in SCORES.items():
            methods = {method: novelty_scores(group.runs_of(method), name) for method in group.methods}
            methods = {method: pairs for method, pairs in methods.items() if pairs}
            if methods:
                flags = next(iter(methods.values()))  # the clock is the same for all methods of a seed
                methods[CLOCK] = [(novelty.time_score(len(new)), new) for _, new in flags]
            for method, pairs in methods.items():
                yield from ({"score": title, "method": method, **row} for row in _curve(pairs))

    def chart(self, frame: pd.DataFrame) -> Chart:
        labels = [f"{m} ({auroc:.2f})" for m, auroc in zip(frame["method"], frame["auroc"], strict=True)]

        def panel(rows: pd.DataFrame) -> Chart:
            charts = [_roc(part).properties(title=str(score)) for score, part in rows.groupby("score", sort=False)]
            return alt.hconcat(*charts).resolve_scale(color="independent", strokeDash="independent")

        return one_below_another(frame.assign(method=labels), panel)


def _curve(pairs: list[tuple[np.ndarray, np.ndarray]]) -> Iterable[Row]:
    curves = [novelty.roc(score, new) for score, new in pairs]
    true = np.array([np.interp(FALSE_POSITIVES, curve.false, curve.true) for curve in curves])
    auroc = float(np.mean([novelty.unseen_auroc(score, new) for score, new in pairs]))
    low, high = (np.clip(end, 0, 1) for end in t_interval_over_seeds(true))
    counts = {"n": min(len(new) for _, new in pairs), "unseen": min(int(new.sum()) for _, new in pairs)}
    for k, false in enumerate(FALSE_POSITIVES):
        ends = {"low": low[k], "high": high[k], "seeds": len(pairs), **counts, "auroc": auroc}
        yield {"false": false, "true": float(true[:, k].mean()), **ends}


def _roc(part: pd.DataFrame) -> Chart:
    """Return the curves of one score; the number after a method is its AUROC."""
    share = alt.Axis(format=".0%", tickCount=5)
    lines = (
        alt.Chart(inline_data(part), width=SIZE, height=SIZE)
        .mark_line(strokeWidth=1.8)
        .encode(
            x=alt.X("false:Q", axis=share, title="seen samples called unseen"),
            y=alt.Y("true:Q", axis=share, title="unseen samples called unseen"),
            order=alt.Order("false:Q"),
            color=method_color(part),
            strokeDash=method_dash(part).legend(None),
            tooltip=["method:N", "false:Q", "true:Q", "low:Q", "high:Q", "seeds:Q", "n:Q", "unseen:Q"],
        )
    )
    chance = pd.DataFrame({"false": [0, 1], "true": [0, 1]})
    diagonal = alt.Chart(inline_data(chance)).mark_line(strokeDash=[4, 3], color=NEUTRAL)
    return diagonal.encode(x=alt.X("false:Q"), y=alt.Y("true:Q")) + lines
