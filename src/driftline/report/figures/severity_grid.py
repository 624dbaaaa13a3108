"""Figure `severity-grid`: accuracy under two corruptions, and paths of constant accuracy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import altair as alt
import pandas as pd

from driftline.errors import UserError
from driftline.record.run import Record
from driftline.report.figures.axes import SIZE, Chart, inline_data, method_scale
from driftline.report.figures.base import Figure, Row, figure, option, to_table
from driftline.streams import corruption_path, read_matrices
from driftline.streams.test_time import schedule as orders
from driftline.streams.test_time.calibration import N_LEVELS, severity_of_level

ENDS = (("_from", -1), ("_to", 1))


@figure("severity-grid", benchmarks=("test-time",))
@dataclass(frozen=True)
class SeverityGrid(Figure):
    """Accuracies of a calibration for a pair of corruptions, and the paths of constant target accuracies."""

    needs: ClassVar[str] = "a calibration"
    calibration: Path | None = option(None, "File written by `driftline calibrate`. [required]")
    target: str = option("40,20,0", "Target accuracies in percent.")
    pair: str | None = option(None, "Two corruptions, separated by a comma. [default: the first pair]")

    @property
    def needs_runs(self) -> bool:
        return False

    def table(self, record: Record, data_dir: Path | None = None) -> pd.DataFrame:
        if self.calibration is None:
            raise UserError("severity-grid needs a calibration: name its file with --calibration FILE")
        grids = read_matrices(self.calibration)
        grids = grids.at(max(N_LEVELS, grids.levels))
        first, second = _pair(self.pair) if self.pair else next(iter(grids.by_pair))
        grid, levels = grids[first, second], [severity_of_level(k, grids.levels) for k in range(grids.levels)]
        panel = {"panel": f"{first} > {second}", "first": first, "second": second}
        rows: list[Row] = [
            {**panel, "target": None, "place": None, "s1": s1, "s2": s2, "accuracy": float(grid[i, j])}
            for i, s1 in enumerate(levels)
            for j, s2 in enumerate(levels)
        ]
        for target in _targets(self.target):
            for place, (i, j) in enumerate(corruption_path(grid, target)):
                point = {"s1": levels[i], "s2": levels[j], "accuracy": float(grid[i, j])}
                rows.append({**panel, "target": target, "place": place, **point})
        return to_table(rows, [])

    def chart(self, frame: pd.DataFrame) -> Chart:
        first, second = (str(frame[name].iloc[0]) for name in ("first", "second"))
        chart = (_cells(frame, first, second) + _paths(frame)).resolve_scale(color="independent")
        return chart.properties(width=1.6 * SIZE, height=1.6 * SIZE, title=f"{first}, then {second}")


def _cells(frame: pd.DataFrame, first: str, second: str) -> Chart:
    """Return a square for each pair of severities, darker where accuracy is higher."""
    axes = [alt.Axis(title=f"severity of {name}", values=[0, 1, 2, 3, 4, 5], grid=False) for name in (second, first)]
    step = 5 / (frame["s1"].nunique() - 1)
    scale = alt.Scale(domain=[-step / 2, 5 + step / 2], nice=False)
    cells = frame[frame["target"].isna()]
    ends = {f"{name}{end}": cells[name] + sign * step / 2 for name in ("s1", "s2") for end, sign in ENDS}
    return (
        alt.Chart(inline_data(cells.assign(**ends)))
        .mark_rect()
        .encode(
            x=alt.X("s2_from:Q", scale=scale, axis=axes[0]),
            x2="s2_to:Q",
            y=alt.Y("s1_from:Q", scale=scale, axis=axes[1]),
            y2="s1_to:Q",
            color=alt.Color("accuracy:Q", scale=alt.Scale(scheme="greys"), legend=alt.Legend(title="accuracy, %")),
        )
    )


def _paths(frame: pd.DataFrame) -> Chart:
    """Return a line for each target."""
    paths = frame[frame["target"].notna()]
    paths = paths.assign(path=[f"{target:g}%" for target in paths["target"]])
    scale = method_scale(list(dict.fromkeys(paths["path"])))
    chart = alt.Chart(inline_data(paths)).mark_line(point=True, strokeWidth=2.5)
    color = alt.Color("path:N", scale=scale, legend=alt.Legend(title="target"))
    return chart.encode(x="s2:Q", y="s1:Q", order=alt.Order("place:Q"), color=color)


def _pair(text: str) -> tuple[str, str]:
    names = orders.corruption_names(text)
    if len(names) != 2 or "," not in text:
        raise UserError(f"a pair is given as gaussian_noise,shot_noise (the first and the second), not as '{text}'")
    return names[0], names[1]


def _targets(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise UserError(f"targets are accuracies in percent, given as 40,20, not as '{text}'") from None
