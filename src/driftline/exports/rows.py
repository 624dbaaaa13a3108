"""A run as rows, for all exporters.

    answers/correct           mean correctness of the answers of each step
    scores/METRIC             a metric at each time
    scores/METRIC/from TIME   a metric of the model of one time, at each later time
    final/METRIC STAT         a metric over all times
    diagnostics/NAME          a diagnostic of the learner after each step
    compute/NAME              the cost of the run

The step of a score is its time if all times are whole numbers, such as years, else the position of its time. Undefined
numbers are left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from driftline.record.card import flatten
from driftline.record.run import Run
from driftline.types import JsonObject

DTYPES: JsonObject = {
    "name": "str",
    "step": "int64",
    "time": "str",
    "value": "float64",
    "low": "float64",  # 95 % interval, where there is one
    "high": "float64",
    "n": "Int64",
}
COLUMNS = list(DTYPES)
MAX_POINTS = 1000  # of a curve; longer ones are averaged over as many ranges of steps
FINAL_PREFIXES = ("final/", "compute/")
"""Prefixes of rows with one value per run, at step 0."""


def run_rows(run: Run) -> pd.DataFrame:
    """Return all rows of a run, with the columns of `COLUMNS`."""
    parts = [_answers(run), *_scores(run), *_diagnostics(run), _compute(run)]
    frame = pd.concat([part.reindex(columns=COLUMNS) for part in parts if len(part)], ignore_index=True)
    frame = frame[np.isfinite(frame["value"].astype(float))].reset_index(drop=True)
    return frame.astype(DTYPES)


def is_final(rows: pd.DataFrame) -> pd.Series:
    """Return which rows have one value per run."""
    return rows["name"].str.startswith(FINAL_PREFIXES)


def flat_settings(run: Run) -> dict[str, str]:
    """Return the settings of a run as flat texts such as `method.settings.lr`, with data fingerprint and version."""
    card = run.card
    identity = {"key": run.key, "label": run.method, "data.fingerprint": card.data.fingerprint}
    settings = flatten(card.run.to_dict())
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in settings.items()}
    return {**texts, **identity, "driftline": card.code.driftline}


def run_title(run: Run) -> str:
    """Return the display name of a run."""
    return f"{run.method} seed {run.seed}"


def _answers(run: Run) -> pd.DataFrame:
    path = run.file("answers")
    if path is None:
        return pd.DataFrame()
    frame = pq.read_table(path, columns=["step", "time", "correct"]).to_pandas()
    return _averaged(frame.rename(columns={"correct": "value"})).assign(name="answers/correct")


def _diagnostics(run: Run) -> Iterator[pd.DataFrame]:
    frame = run.table("diagnostics")
    if len(frame):
        for diagnostic, part in frame.groupby("gauge", sort=True):
            yield _averaged(part).assign(name=f"diagnostics/{diagnostic}")


def _averaged(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the mean value of each step, or of at most `MAX_POINTS` ranges of steps."""
    steps, position = np.unique(frame["step"].to_numpy(), return_inverse=True)
    part = position // -(-len(steps) // MAX_POINTS)
    grouped = frame.assign(value=frame["value"].astype(float)).groupby(part)
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
    yield along.assign(name=name, step=_steps(at, _time_order(run)), time=at)


def _time_order(run: Run) -> list[str]:
    """Return the times in order, if the card has them."""
    protocol = run.card.protocol
    times = protocol.get("periods") or protocol.get("steps") or []
    return [str(time) for time in times] if isinstance(times, list | dict) else []


def _steps(times: pd.Series, order: list[str]) -> pd.Series:
    try:
        return times.astype("int64")
    except ValueError:
        position = {time: k for k, time in enumerate(dict.fromkeys([*order, *times]))}
        return times.map(position)


def _compute(run: Run) -> pd.DataFrame:
    costs = {name: value for name, value in run.card.compute.to_dict().items() if isinstance(value, int | float)}
    rows = [{"name": f"compute/{name}", "step": 0, "time": "", "value": value} for name, value in costs.items()]
    return pd.DataFrame(rows)
