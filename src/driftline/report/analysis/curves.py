"""Curves over time, already averaged over seeds, as columns and rows for charts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from driftline import registry
from driftline.report.analysis.aggregate import mean_over_seeds, to_common_end
from driftline.report.analysis.estimates import bounds, is_share
from driftline.report.analysis.groups import Group
from driftline.types import JsonObject

DIGITS = 4  # decimals in charts and tooltips
ESTIMATE_COLUMNS = ["value", "low", "high", "n", "seeds", "interval"]


@dataclass(frozen=True)
class Series:
    """Rows of one chart or several, in the order of time."""

    columns: list[str]
    rows: list[list[Any]] = field(repr=False)

    @classmethod
    def from_frame(cls, frame: pd.DataFrame, columns: list[str]) -> Series:
        """Return some columns of a frame, rounded."""
        return cls(columns, [[json_value(value) for value in row] for row in frame[columns].itertuples(index=False)])

    def values(self, column: str) -> list[Any]:
        """Return one column without missing values."""
        at = self.columns.index(column)
        return [row[at] for row in self.rows if row[at] is not None]

    def records(self) -> Iterator[JsonObject]:
        """Iterate over the rows as dictionaries."""
        return (dict(zip(self.columns, row, strict=True)) for row in self.rows)


def cells_by_method(group: Group, metric: str) -> dict[str, Series]:
    """Return a metric of (t, tau), such as accuracy, by method; methods without it are left out."""
    scores = group.scores
    rows = scores[(scores["metric"] == metric) & (scores["stat"] == "each") & scores["tau"].notna()]
    if rows.empty:
        return {}
    summary = _in_time(mean_over_seeds(rows, ["method", "time", "tau"], bounds(metric)).reset_index(), group)
    columns = ["time", "tau", *ESTIMATE_COLUMNS]
    return {str(method): Series.from_frame(frame, columns) for method, frame in summary.groupby("method")}


def curve(group: Group, metric: str) -> Series:
    """Return a metric over time for all methods; each curve ends with its shortest seed."""
    scores = group.scores
    rows = scores[(scores["metric"] == metric) & (scores["stat"] == "each") & scores["tau"].isna()]
    rows = rows[rows["time"].notna()]
    columns = ["method", "time", *ESTIMATE_COLUMNS]
    if rows.empty:
        return Series(columns, [])
    summary = _in_time(mean_over_seeds(rows, ["method", "time"], bounds(metric)).reset_index(), group)
    return Series.from_frame(to_common_end(summary), columns)


def headline_curves(group: Group, headline: tuple[tuple[str, str], ...]) -> dict[str, Series]:
    """Return the curves of the headline metrics that are shares and have a value per time."""
    curves = {metric: curve(group, metric) for metric, _ in headline if is_share(metric)}
    return {metric: series for metric, series in curves.items() if series.rows}


def validation_choices(group: Group) -> list[tuple[str, int, int, JsonObject]]:
    """Return what validation data selected: method, seed, number of fits, and each selected fit."""
    return [
        (group.labels[run.key], run.seed, run.card.protocol["trials"], selected)
        for run in group.runs
        if not run.card.run.search  # a search before the runs has its own table
        for selected in run.card.protocol.get("chosen", [])
    ]


def sample_counts(group: Group) -> Series:
    """Return the number of training and held-out samples of each period or step."""
    protocol = group.card.protocol
    parts = {
        "shown": protocol.get("samples_per_period") or protocol.get("samples_per_step", []),
        "held out": protocol.get("held_out_per_period") or _test_set(protocol),
    }
    rows = [
        [name, part, count]
        for part, counts in parts.items()
        for name, count in zip(time_names(group), counts, strict=False)
        if count is not None
    ]
    return Series(["time", "part", "count"], rows)


def time_names(group: Group) -> list[str]:
    """Return the names of the times in order: periods or steps of the card, else as they appear in the scores."""
    protocol = group.card.protocol
    periods = protocol.get("periods") or protocol.get("steps")
    return [str(name) for name in periods or group.scores["time"].dropna().drop_duplicates()]


def time_unit(group: Group) -> str:
    """Return the title of a group's time axis."""
    return str(registry.get("benchmark", group.benchmark).time_unit)


def _test_set(protocol: JsonObject) -> list[int | None]:
    """Return the size of the test set, which belongs to the last step."""
    return [*[None] * (len(protocol["steps"]) - 1), protocol["test"]] if "steps" in protocol else []


def _in_time(frame: pd.DataFrame, group: Group) -> pd.DataFrame:
    order = {name: at for at, name in enumerate(time_names(group))}
    keys = [column for column in ("method", "time", "tau") if column in frame]
    return frame.sort_values(keys, key=lambda column: column if column.name == "method" else column.map(order))


def json_value(value: Any) -> Any:
    """Return a value for a chart: a text, a rounded number, or None."""
    if isinstance(value, str):
        return value
    number = float(value)
    if not math.isfinite(number):
        return None
    return int(number) if number.is_integer() and not isinstance(value, float) else round(number, DIGITS)
