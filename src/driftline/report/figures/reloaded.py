"""Figures of the networks of finished runs, which are reloaded from the store; nothing is trained."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import altair as alt
import pandas as pd

from driftline.errors import MissingExtra
from driftline.record.run import Record, Run
from driftline.report.analysis.groups import Group
from driftline.report.figures.axes import SIZE, TEXT, Chart, independent_scales, method_color, method_shape, panels
from driftline.report.figures.base import Figure, Row, left_out_note, to_table
from driftline.spec.keys import stable_hash

if TYPE_CHECKING:
    from driftline.engine.reload import ReloadedRun

ALL_LAYERS = "all layers"


class LeftOut(Exception):
    """A run that has no place in a figure."""


@dataclass(frozen=True)
class NetworkFigure(Figure):
    """A figure whose rows come from the networks of each run."""

    needs: ClassVar[str] = "the networks of the runs"
    cache: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Values that several runs share."""

    def network_rows(self, visit: ReloadedRun) -> Iterable[Row]:
        """Return the rows of a run, or raise LeftOut."""
        raise NotImplementedError

    def table(self, record: Record, data_dir: Path | None = None) -> pd.DataFrame:
        try:
            from driftline.engine.executors.process import one_thread
            from driftline.engine.reload import has_saved_networks, reload_run
        except ModuleNotFoundError as error:
            if error.name != "torch":
                raise
            raise MissingExtra("a figure of networks", "deep") from None
        rows: list[Row] = []
        left_out: dict[str, dict[str, None]] = {}
        for group, run in [(one, run) for one in self.groups(record) for run in one.runs]:
            try:
                if not has_saved_networks(run):
                    raise LeftOut("no networks are kept")
                with one_thread():  # as in training, so that answers are identical
                    rows += [{**run_columns(group, run), **row} for row in self.network_rows(reload_run(run, data_dir))]
            except LeftOut as reason:
                left_out.setdefault(str(reason), {})[group.labels[run.key]] = None
        notes = [note for why, labels in left_out.items() for note in left_out_note(why, [", ".join(labels)])]
        return to_table(rows, notes)

    def cached(self, key: object, make: Callable[[], Any]) -> Any:
        """Return a value, computed at most once per key."""
        if key not in self.cache:
            self.cache[key] = make()
        return self.cache[key]


def run_columns(group: Group, run: Run) -> Row:
    """Return the columns that identify a run."""
    return {"panel": group.title, "method": group.labels[run.key], "seed": run.seed, "run": run.key}


def shared_setting(visit: ReloadedRun) -> str:
    """Return a hash of what runs of different methods share."""
    return stable_hash(visit.job.model_dump(mode="json", exclude={"method", "label"}))


def reload_oracle(visit: ReloadedRun) -> ReloadedRun:
    """Return the reloaded oracle run of the same setting."""
    if visit.scenario.oracle_stream is None:
        raise LeftOut("this sequence has no oracle; model-map needs none")
    return visit.with_method("oracle")


def paths_by_layer(frame: pd.DataFrame, x: tuple[str, str], y: tuple[str, str], oracle: float) -> Chart:
    """Return the models of each step, a panel per layer, and a cross at the oracle; `x` and `y`: column and title."""
    axes = [alt.Axis(title=title, tickCount=5) for _, title in (x, y)]
    base = alt.Chart(width=SIZE, height=SIZE).encode(
        x=alt.X(f"{x[0]}:Q", scale=alt.Scale(zero=False), axis=axes[0]),
        y=alt.Y(f"{y[0]}:Q", scale=alt.Scale(zero=False), axis=axes[1]),
        color=method_color(frame),
    )
    cross = alt.Chart().mark_point(shape="cross", angle=45, size=90, color=TEXT, filled=True)
    cross = cross.encode(x=alt.datum(oracle), y=alt.datum(oracle))
    models = path_of_steps(base, frame, ["method:N", "seed:O", "step:O", f"{x[0]}:Q", f"{y[0]}:Q"])
    return independent_scales(panels(cross + models, frame, ["panel", "layer"]), "x", "y")


def path_of_steps(base: alt.Chart, frame: pd.DataFrame, tooltip: list[str]) -> Chart:
    """Return a line through the steps of each run, with their numbers; the final model is the larger point."""
    frame["last"] = frame["step"] == frame.groupby("run")["step"].transform("max")
    line = base.mark_line(strokeWidth=1.2, opacity=0.7).encode(order=alt.Order("step:Q"), detail=alt.Detail("run:N"))
    size = alt.condition("datum.last", alt.value(80), alt.value(28))
    points = base.mark_point(filled=True, opacity=0.9).encode(size=size, shape=method_shape(frame), tooltip=tooltip)
    numbers = base.mark_text(dx=7, dy=-6, fontSize=9).encode(text=alt.Text("step:O"))
    return line + points + numbers
