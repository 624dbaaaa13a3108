"""A run as rows: what every sink is fed.

    answers/correct           how right the answers of each step were, on average
    scores/METRIC             a metric of each time
    scores/METRIC/from TIME   a metric of the model of one time, at each later time
    final/METRIC STAT         a metric over all times
    gauges/NAME               a number from inside the learner, after each step
    compute/NAME              what the run cost

A score's step is its time where all times are whole numbers, such as years; else its place among them. Numbers that are
undefined are left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from driftline.record import Run

KINDS: dict[str, Any] = {
    "name": "str",
    "step": "int64",
    "time": "str",
    "value": "float64",
    "low": "float64",  # 95 % interval, where there is one
    "high": "float64",
    "n": "Int64",
}
COLUMNS = list(KINDS)
POINTS = 1000  # what a curve can show: longer ones are averaged over as many stretches of steps
FINAL = ("final/", "compute/")
"""Rows whose names begin so have one value per run, and stand at step 0."""


def rows_of(run: Run) -> pd.DataFrame:
    """All rows of a run, with the columns of `COLUMNS`."""
    parts = [_answers(run), *_scores(run), *_gauges(run), _compute(run)]
    frame = pd.concat([part.reindex(columns=COLUMNS) for part in parts if len(part)], ignore_index=True)
    frame = frame[np.isfinite(frame["value"].astype(float))].reset_index(drop=True)
    return frame.astype(KINDS)


def is_final(rows: pd.DataFrame) -> pd.Series:
    """Which rows have one value per run."""
    return rows["name"].str.startswith(FINAL)


def settings_of(run: Run) -> dict[str, str]:
    """What was run, flat and in words: `method.settings.lr` and the like, the data's fingerprint and the version."""
    card = run.card
    about = {"key": run.key, "label": run.method, "data.fingerprint": card["data"]["fingerprint"]}
    return {**_flat(card["run"]), **about, "driftline": card["code"]["driftline"]}


def title_of(run: Run) -> str:
    """How a run is called where people read it."""
    return f"{run.method} seed {run.seed}"


def _answers(run: Run) -> pd.DataFrame:
    path = run.file("answers")
    if path is None:
        return pd.DataFrame()
    frame = pq.read_table(path, columns=["step", "time", "correct"]).to_pandas()
    return _stretched(frame.rename(columns={"correct": "value"})).assign(name="answers/correct")


def _gauges(run: Run) -> Iterator[pd.DataFrame]:
    frame = run.table("gauges")
    if len(frame):
        for gauge, part in frame.groupby("gauge", sort=True):
            yield _stretched(part).assign(name=f"gauges/{gauge}")


def _stretched(frame: pd.DataFrame) -> pd.DataFrame:
    """The mean value of each step, or of as many stretches of steps as a curve can show."""
    steps, place = np.unique(frame["step"].to_numpy(), return_inverse=True)
    stretch = place // -(-len(steps) // POINTS)
    grouped = frame.assign(value=frame["value"].astype(float)).groupby(stretch)
    return grouped.agg(step=("step", "last"), time=("time", "last"), value=("value", "mean"), n=("value", "size"))


def _scores(run: Run) -> Iterator[pd.DataFrame]:
    frame = run.table("scores")
    if frame.empty:
        return
    each = frame["stat"] == "each"
    yield frame[~each].assign(name="final/" + frame["metric"] + " " + frame["stat"], step=0, time="")
    along = frame[each & frame["time"].notna()]
    cells = along["tau"].notna()
    at = along["tau"].where(cells, along["time"]).astype(str)
    start = (" from " + along["time"].astype(str)).str.replace(" ", "/", n=1)
    name = "scores/" + along["metric"] + start.where(cells, "")
    yield along.assign(name=name, step=_steps(at, _order(run)), time=at)


def _order(run: Run) -> list[str]:
    """The times in order, if the card tells them."""
    protocol = run.card["protocol"]
    told = protocol.get("periods") or protocol.get("steps") or []
    return [str(time) for time in told] if isinstance(told, list | dict) else []


def _steps(times: pd.Series, order: list[str]) -> pd.Series:
    try:
        return times.astype("int64")
    except ValueError:
        place = {time: k for k, time in enumerate(dict.fromkeys([*order, *times]))}
        return times.map(place)


def _compute(run: Run) -> pd.DataFrame:
    counted = {name: value for name, value in run.card["compute"].items() if isinstance(value, int | float)}
    rows = [{"name": f"compute/{name}", "step": 0, "time": "", "value": value} for name, value in counted.items()]
    return pd.DataFrame(rows)


def _flat(tree: Any, prefix: str = "") -> dict[str, str]:
    if isinstance(tree, dict):
        inner = ((f"{prefix}.{key}" if prefix else str(key), value) for key, value in tree.items())
        return {name: said for key, value in inner for name, said in _flat(value, key).items()}
    return {prefix: tree if isinstance(tree, str) else json.dumps(tree)}
