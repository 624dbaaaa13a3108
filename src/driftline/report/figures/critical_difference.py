"""Figure `critical-difference`: mean ranks of methods over the settings of a matrix, and which of them differ."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import altair as alt
import pandas as pd

from driftline.metrics.robust_choice import nemenyi_difference
from driftline.record.run import Record
from driftline.report.analysis.leaderboard import Leaderboard, leaderboard
from driftline.report.analysis.matrix import require_views
from driftline.report.figures.axes import SIZE, Chart, names, panels
from driftline.report.figures.base import Figure, Row, figure, to_table
from driftline.report.figures.palette import NEUTRAL, color

TOGETHER, APART = "not separated from the best rank", "separated (Wilcoxon over settings, Holm)"


@figure("critical-difference")
@dataclass(frozen=True)
class CriticalDifference(Figure):
    """Mean ranks over the settings of a matrix with intervals over seeds, and the methods that no test separates."""

    needs: ClassVar[str] = "a matrix"

    def table(self, record: Record, data_dir: Path | None = None) -> pd.DataFrame:
        rows: list[Row] = []
        notes = []
        for view in require_views(record):
            board = leaderboard(view)
            rows += _rows(board, view.title)
            difference = nemenyi_difference(len(board.methods), len(board.settings))
            notes.append(
                f"In color: methods that Wilcoxon's signed-rank test over {len(board.settings)} settings, "
                "Holm-corrected, does not separate from the best mean rank. Nemenyi's critical difference would be "
                f"{difference:.1f} ranks.{board.inseparable}"
            )
        return to_table(rows, notes)

    def chart(self, frame: pd.DataFrame) -> Chart:
        scale = alt.Scale(domain=[TOGETHER, APART], range=[color(0), NEUTRAL])
        base = alt.Chart(width=1.6 * SIZE, height=alt.Step(15)).encode(
            y=alt.Y("method:N", sort=names(frame), axis=alt.Axis(title=None, labelLimit=220)),
            color=alt.Color("verdict:N", scale=scale, legend=alt.Legend(title=None, orient="top", labelLimit=400)),
            tooltip=["method:N", "rank:Q", "low:Q", "high:Q", "settings:Q", "seeds:Q"],
        )
        axis = alt.Axis(title="mean rank (1 is best)", tickCount=6)
        points = base.mark_point(filled=True, size=60, opacity=1).encode(
            x=alt.X("rank:Q", axis=axis, scale=alt.Scale(zero=False))
        )
        intervals = base.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q"), x2=alt.X2("high:Q"))
        return panels(intervals + points, frame, ["panel"])


def _rows(board: Leaderboard, panel: str) -> list[Row]:
    order = sorted(range(len(board.methods)), key=lambda k: board.ranks[k].value)
    return [
        {
            **{"panel": panel, "method": board.methods[k], "rank": board.ranks[k].value},
            **{"low": board.ranks[k].low, "high": board.ranks[k].high},
            **{"verdict": APART if board.separated[k] else TOGETHER},
            **{"settings": len(board.settings), "seeds": board.scores.shape[2]},
        }
        for k in order
    ]
