"""The numbers behind the charts, already averaged over seeds, as compact columns and rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd

from driftline.report.groups import Group
from driftline.report.results import Column, ResultTable, bounds, is_share
from driftline.report.spread import over_seeds, to_common_end

DIGITS = 4  # what a chart can show, and a tooltip should claim
NUMBERS = ["value", "low", "high", "n", "seeds", "interval"]


@dataclass(frozen=True)
class Series:
    """Rows for one chart or several, in the order of time."""

    columns: list[str]
    rows: list[list[Any]] = field(repr=False)

    def values(self, column: str) -> list[Any]:
        """One column, without the gaps."""
        at = self.columns.index(column)
        return [row[at] for row in self.rows if row[at] is not None]


def cells(group: Group, metric: str) -> dict[str, Series]:
    """A metric of (t, tau), such as accuracy, by method; methods without it are left out."""
    scores = group.scores
    rows = scores[(scores["metric"] == metric) & (scores["stat"] == "each") & scores["tau"].notna()]
    if rows.empty:
        return {}
    summary = _in_time(over_seeds(rows, ["method", "time", "tau"], bounds(metric)).reset_index(), group)
    columns = ["time", "tau", *NUMBERS]
    return {str(method): _series(frame, columns) for method, frame in summary.groupby("method")}


def per_time(group: Group, metric: str) -> Series:
    """A metric of t, such as ID, for all methods; each curve ends where the first of its seeds does."""
    scores = group.scores
    rows = scores[(scores["metric"] == metric) & (scores["stat"] == "each") & scores["tau"].isna()]
    rows = rows[rows["time"].notna()]
    columns = ["method", "time", *NUMBERS]
    if rows.empty:
        return Series(columns, [])
    summary = _in_time(over_seeds(rows, ["method", "time"], bounds(metric)).reset_index(), group)
    return _series(to_common_end(summary), columns)


def at_the_end(table: ResultTable, column: Column) -> Series:
    """A metric that has one value per run, for all methods, from the lowest to the highest."""
    cells = {row.method: cell for row in table.rows if (cell := table.cell(row.method, column.metric, column.stat))}
    rows = [
        [method, *(plain(getattr(cell, name)) for name in NUMBERS)]
        for method, cell in sorted(cells.items(), key=lambda pair: pair[1].value)
    ]
    return Series(["method", *NUMBERS], rows)


def choices(group: Group) -> list[tuple[str, int, int, dict[str, Any]]]:
    """What validation data chose: method, seed, how many trials there were, and each trial that was picked."""
    return [
        (group.labels[run.key], run.seed, run.card["protocol"]["trials"], chosen)
        for run in group.runs
        if not run.card["run"].get("search")  # what was chosen before a run has a table of its own
        for chosen in run.card["protocol"].get("chosen", [])
    ]


def sample_counts(group: Group) -> Series:
    """How many samples each period or step shows and holds out."""
    protocol = group.card["protocol"]
    parts = {
        "shown": protocol.get("samples_per_period") or protocol.get("samples_per_step", []),
        "held out": protocol.get("held_out_per_period") or _test(protocol),
    }
    rows = [
        [name, part, count]
        for part, counts in parts.items()
        for name, count in zip(times(group), counts, strict=False)
        if count is not None
    ]
    return Series(["time", "part", "count"], rows)


def projection(group: Group, method: str, chunks: int = 8) -> tuple[Series, str]:
    """The features of a method's first seed in two dimensions, by stretches of time, and how they were projected."""
    columns, names = ["stretch", "class", "x", "y"], times(group)
    frame = group.runs_of(method)[0].table("features")
    frame = frame[frame["time"].isin(names)] if len(frame) else frame  # those of few-shot episodes have no time
    if frame.empty:
        return Series(columns, []), ""
    places, how = project(np.stack(frame["features"].to_list()))
    parts = np.array_split(np.array(names), min(chunks, len(names)))
    stretch = {name: part[0] if len(part) == 1 else f"{part[0]} to {part[-1]}" for part in parts for name in part}
    rows = zip(frame["time"].map(stretch), frame["truth"].astype(str), *places.round(3).T.tolist(), strict=True)
    return Series(columns, [list(row) for row in rows]), how


def project(features: np.ndarray) -> tuple[np.ndarray, str]:
    """Two coordinates per row: UMAP where it is installed, else the two main directions of variation."""
    if find_spec("umap"):
        import umap

        return np.asarray(umap.UMAP(random_state=0).fit_transform(features), float), "UMAP"
    centred = features - features.mean(axis=0)
    left, size, _ = np.linalg.svd(centred.astype(float), full_matrices=False)
    places = np.zeros((len(features), 2))
    kept = min(2, len(size))
    places[:, :kept] = left[:, :kept] * size[:kept]
    return places, "PCA"


def times(group: Group) -> list[str]:
    """The names of the times in order: the periods or steps on the card, else as they appear in the scores."""
    protocol = group.card["protocol"]
    periods = protocol.get("periods") or protocol.get("steps")
    return [str(name) for name in periods or group.scores["time"].dropna().drop_duplicates()]


def unit(group: Group) -> str:
    """What the times of a group are, as an axis is called."""
    return {"test-time": "images seen", "open-world": "samples seen"}.get(group.card["run"]["benchmark"], "t")


def over_time(group: Group, headline: tuple[tuple[str, str], ...]) -> dict[str, Series]:
    """The headline metrics that are shares and have a value per time."""
    found = {metric: per_time(group, metric) for metric, _ in headline if is_share(metric)}
    return {metric: series for metric, series in found.items() if series.rows}


def _test(protocol: dict[str, Any]) -> list[int | None]:
    """The test set of the last step, in its place."""
    return [*[None] * (len(protocol["steps"]) - 1), protocol["test"]] if "steps" in protocol else []


def _in_time(frame: pd.DataFrame, group: Group) -> pd.DataFrame:
    order = {name: at for at, name in enumerate(times(group))}
    keys = [column for column in ("method", "time", "tau") if column in frame]
    return frame.sort_values(keys, key=lambda column: column if column.name == "method" else column.map(order))


def _series(frame: pd.DataFrame, columns: list[str]) -> Series:
    return Series(columns, [[plain(value) for value in row] for row in frame[columns].itertuples(index=False)])


def plain(value: Any) -> Any:
    """A value as a chart takes it: a text, a number with few digits, or nothing."""
    if isinstance(value, str):
        return value
    number = float(value)
    if not math.isfinite(number):
        return None
    return int(number) if number.is_integer() and not isinstance(value, float) else round(number, DIGITS)
