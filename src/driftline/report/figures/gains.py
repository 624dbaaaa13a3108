"""Figure `gains`: gains over a baseline, by the dynamics of the stream."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import altair as alt
import pandas as pd

from driftline.metrics import title
from driftline.record.run import Record
from driftline.report.analysis.gains import gains
from driftline.report.analysis.groups import Group, group_ignoring
from driftline.report.figures.axes import POINTS, SIZE, Chart, method_color, names, panels
from driftline.report.figures.base import Figure, Row, figure, left_out_note, option, to_table
from driftline.report.figures.palette import NEUTRAL

DYNAMICS = ("alpha", "beta", "gamma")


@figure("gains", benchmarks=("refinement",))
@dataclass(frozen=True)
class Gains(Figure):
    """Gain in the final value of a metric over a baseline on the same seeds, by the dynamics of the stream."""

    baseline: str = option("frozen", "The method that gains are relative to.")
    metric: str = option("oec", "The metric.")

    @property
    def missing(self) -> str:
        return f"no final {title(self.metric)} of {self.baseline} and another method on the same seed"

    def table(self, record: Record, data_dir: Path | None = None) -> pd.DataFrame:
        found = {group.title: (group, gains(group, self.baseline, self.metric)) for group in self.groups(record)}
        usable = (group for group, estimates in found.values() if estimates)
        rows: list[Row] = []
        for text, members in group_ignoring(usable, [f"refinement.{name}" for name in DYNAMICS]):
            for group in sorted(members, key=lambda group: tuple(group.options.get(name, 0) for name in DYNAMICS)):
                shared = {"panel": text or _panel(group), "stream": str(group.card.protocol.get("protocol", ""))}
                shared |= {"metric": self.metric, "baseline": self.baseline}
                for method, gain in found[group.title][1].items():
                    number = {"value": gain.value, "low": gain.low, "high": gain.high}
                    counts = {"seeds": gain.seeds, "n": gain.n, "interval": gain.interval}
                    rows.append({**shared, "method": method, **number, **counts})
        left_out = [title for title, (_, estimates) in found.items() if not estimates]
        return to_table(rows, left_out_note(self.missing, left_out))

    def chart(self, frame: pd.DataFrame) -> Chart:
        metric, baseline = title(str(frame["metric"].iloc[0])), str(frame["baseline"].iloc[0])
        axis = alt.Axis(title=f"gain in final {metric} over {baseline}, points", labelExpr=POINTS, tickCount=5)
        base = alt.Chart(width=SIZE, height=alt.Step(20)).encode(
            y=alt.Y("method:N", sort=names(frame), axis=alt.Axis(title=None, labelLimit=220)),
            color=method_color(frame).legend(None),
            tooltip=["method:N", "value:Q", "low:Q", "high:Q", "seeds:Q", "n:Q"],
        )
        points = base.mark_point(filled=True, size=70, opacity=1).encode(x=alt.X("value:Q", axis=axis))
        intervals = base.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q"), x2=alt.X2("high:Q"))
        zero = alt.Chart().mark_rule(strokeDash=[4, 3], color=NEUTRAL).encode(x=alt.datum(0))
        return panels(zero + intervals + points, frame, ["panel", "stream"])


def _panel(group: Group) -> str:
    run = group.card.run
    return " · ".join((run.benchmark, run.data.display_name, run.model.display_name))
