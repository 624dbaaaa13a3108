"""What happened: raw answers and probes, append-only, and a card that says under which protocol.

A run is a folder: `answers.parquet` and `probes.parquet` hold one row per answer, `gauges.parquet` numbers from inside
a learner, if it shows any, `card.json` all that is needed to read them, `scores.parquet` what the benchmark's metrics
made of them, `runtime.json` the circumstances that must not matter (wall-clock time, machine). Metrics are functions of
the rows, so a new metric scores old runs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from driftline.atomic import replacing
from driftline.errors import MissingExtra, UserError, unknown
from driftline.tasks import Task
from driftline.types import Answers, Probe, Samples, Step

if TYPE_CHECKING:
    import polars as pl

TOP = 5  # how many of the best scores an answer keeps
GROUP = 1 << 17  # rows per Parquet row group: fixed, so that files do not depend on how a run was interrupted
TABLES = ("answers", "probes", "gauges")
FRAMES = (*TABLES, "scores")


class Recorder:
    """Collects rows in memory; `flush` moves them to a part file, `finish` joins the parts."""

    def __init__(self, task: Task, parts: Path, compute: Callable[[], tuple[int | None, int | None]]) -> None:
        self._task = task
        self._parts = parts
        self._compute = compute
        self._rows: dict[str, list[pa.Table]] = {table: [] for table in TABLES}
        self.flushed: list[dict[str, int]] = []
        """For each part, the rows of each table in it."""

    def answered(self, step: Step, answers: Answers) -> None:
        """The learner answered a step, before any of its labels were revealed."""
        columns = self._columns(step, step.samples, answers)
        if answers.scores is not None:
            best = _best(answers.scores, TOP)
            columns["top"] = _lists(best.astype(np.int32))
            columns["top_scores"] = _lists(np.take_along_axis(answers.scores, best, 1).astype(np.float32))
        if answers.distance is not None:
            columns["distance"] = answers.distance.astype(np.float32)
        self._rows["answers"].append(pa.table(columns))

    def probed(self, step: Step, probe: Probe, answers: Answers) -> None:
        """The learner was examined after a step."""
        columns = self._columns(step, probe.samples, answers)
        columns["probe"] = pa.repeat(probe.name, len(answers))
        self._rows["probes"].append(pa.table(columns))

    def gauged(self, step: Step, gauges: Mapping[str, float]) -> None:
        """The learner showed some numbers about its inside after a step."""
        if gauges:
            at = {"step": np.full(len(gauges), step.index, np.int32), "time": pa.repeat(step.time, len(gauges))}
            values = {"gauge": pa.array(list(gauges)), "value": np.array(list(gauges.values()), float)}
            self._rows["gauges"].append(pa.table({**at, **values}))

    def flush(self) -> None:
        """Make everything so far safe on disk."""
        counts = {}
        for table, rows in self._rows.items():
            if rows:
                joined = pa.concat_tables(rows)
                with replacing(self._part(table, len(self.flushed))) as path:
                    pq.write_table(joined, path, compression="none", use_dictionary=False)  # read but once
                counts[table] = joined.num_rows
                rows.clear()
        self.flushed.append(counts)

    def finish(self, folder: Path) -> None:
        """Write the finished tables into a folder."""
        self.flush()
        for table in TABLES:
            parts = [self._part(table, k) for k, counts in enumerate(self.flushed) if table in counts]
            write_rows(folder / f"{table}.parquet", (pq.read_table(part) for part in parts))

    def state(self) -> list[dict[str, int]]:
        return self.flushed

    def restore(self, state: list[dict[str, int]]) -> None:
        """Go on after these parts; one that is missing or damaged raises, because its rows are lost."""
        for k, counts in enumerate(state):
            for table, rows in counts.items():
                if pq.read_metadata(self._part(table, k)).num_rows != rows:
                    raise ValueError(f"part {k} of {table} does not have {rows} rows")
        self.flushed = list(state)

    def _part(self, table: str, number: int) -> Path:
        return self._parts / f"{table}-{number:06d}.parquet"

    def _columns(self, step: Step, samples: Samples, answers: Answers) -> dict[str, Any]:
        forward, backward = self._compute()
        n = len(samples)
        if len(answers) != n:
            raise UserError(f"a learner was asked about {n} inputs and gave {len(answers)} answers")
        confidence = np.full(n, np.nan) if answers.scores is None else answers.scores.max(axis=1)
        group = {} if samples.group is None else {"group": np.asarray(samples.group)}
        return {
            "step": np.full(n, step.index, np.int32),
            "time": pa.repeat(step.time, n),
            "id": np.asarray(samples.id),
            **group,
            "truth": np.asarray(samples.y),
            "prediction": np.asarray(answers.prediction),
            "correct": self._task.correct(answers.prediction, samples.y).astype(np.float32),
            "confidence": confidence.astype(np.float32),
            "forward_macs": pa.repeat(pa.scalar(forward, pa.int64()), n),
            "backward_macs": pa.repeat(pa.scalar(backward, pa.int64()), n),
        }


def _best(scores: np.ndarray, most: int) -> np.ndarray:
    """The places of the highest scores of each row, best first; of equal ones the first.

    >>> _best(np.array([[0.1, 0.4, 0.4, 0.1]]), 3).tolist()
    [[1, 2, 0]]
    """
    found = np.empty((len(scores), min(most, scores.shape[1])), int)
    for start in range(0, len(scores), 64):  # so many at a time stay in the cache
        left = scores[start : start + 64].copy()
        left[np.isnan(left)] = -np.inf
        rows, best = np.arange(len(left)), found[start : start + 64]
        for k in range(found.shape[1]):  # with a thousand classes, five looks are ten times faster than sorting
            best[:, k] = left.argmax(axis=1)
            left[rows, best[:, k]] = -np.inf
    return found


def _lists(rows: np.ndarray) -> pa.Array:
    """A matrix as a column with one list per row."""
    ends = np.arange(len(rows) + 1, dtype=np.int32) * rows.shape[1]
    return pa.ListArray.from_arrays(pa.array(ends), pa.array(rows.ravel()))


def write_rows(path: Path, tables: Iterable[pa.Table]) -> None:
    """One Parquet file from many tables, in row groups of a fixed size; nothing is written for no rows."""
    groups = _regroup(tables)
    first = next(groups, None)
    if first is None:
        return
    options = {"compression": "zstd", "use_dictionary": _repeating(first.schema)}
    with replacing(path) as temporary, pq.ParquetWriter(temporary, first.schema, **options) as writer:
        writer.write_table(first, row_group_size=GROUP)
        for group in groups:
            writer.write_table(group, row_group_size=GROUP)


def _repeating(schema: pa.Schema) -> list[str]:
    """The columns whose values repeat: a dictionary of scores costs more time and room than the scores."""
    return [field.name for field in schema if not (pa.types.is_floating(field.type) or pa.types.is_list(field.type))]


def _regroup(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    waiting: list[pa.Table] = []
    for table in tables:
        waiting.append(table)
        if sum(part.num_rows for part in waiting) >= GROUP:
            joined = pa.concat_tables(waiting).combine_chunks()
            whole = joined.num_rows // GROUP * GROUP
            yield from (joined.slice(at, GROUP) for at in range(0, whole, GROUP))
            waiting = [joined.slice(whole)]
    if sum(part.num_rows for part in waiting):
        yield pa.concat_tables(waiting).combine_chunks()


@dataclass(frozen=True)
class Run:
    """One finished run on disk: one method, one seed."""

    folder: Path

    @cached_property
    def card(self) -> dict[str, Any]:
        path = self.folder / "card.json"
        try:
            card: dict[str, Any] = json.loads(path.read_bytes())
        except ValueError as error:
            raise UserError(f"{path} is damaged ({error}): delete the folder it is in and run that again") from error
        return card

    @property
    def key(self) -> str:
        return str(self.card["key"])

    @property
    def method(self) -> str:
        """The method's name, with the settings in which it differs from its defaults."""
        return str(self.card["label"])

    @property
    def is_result(self) -> bool:
        """Whether it was made for its own sake, and not to choose settings by."""
        return bool(self.card["run"].get("purpose") != "trial")

    @property
    def seed(self) -> int:
        return int(self.card["run"]["seed"])

    def table(self, name: str) -> pd.DataFrame:
        """`answers`, `probes` or `scores` as a frame; empty if the run has none."""
        path = self.folder / f"{name}.parquet"
        return pq.read_table(path).to_pandas() if path.exists() else pd.DataFrame()


class Record:
    """Everything recorded by one run or several, as frames with a column for method and seed."""

    def __init__(self, runs: Iterable[Run]) -> None:
        self.runs = tuple(runs)

    def __repr__(self) -> str:
        methods = ", ".join(dict.fromkeys(run.method for run in self.runs))
        return f"<Record of {len(self.runs)} run(s): {methods}>"

    def __len__(self) -> int:
        return len(self.runs)

    @property
    def cards(self) -> list[dict[str, Any]]:
        return [run.card for run in self.runs]

    @cached_property
    def answers(self) -> pd.DataFrame:
        """One row per answer given before labels were revealed."""
        return self._frame("answers")

    @cached_property
    def probes(self) -> pd.DataFrame:
        """One row per answer given in an examination."""
        return self._frame("probes")

    @cached_property
    def scores(self) -> pd.DataFrame:
        """One row per (run, metric, time): value, interval, n."""
        return self._frame("scores")

    def polars(self, name: str) -> pl.DataFrame:
        """`answers`, `probes`, `gauges` or `scores` of all runs as a polars frame, with the same columns in front.

        A column that one run lacks is null there; one that is numbers here and text there becomes text.
        """
        if name not in FRAMES:
            raise unknown("frame", name, FRAMES)
        try:
            import polars as pl
        except ModuleNotFoundError as error:
            if error.name != "polars":
                raise
            raise MissingExtra("a polars frame", "polars") from None
        frames = []
        for run in self.runs:
            path = run.folder / f"{name}.parquet"
            if path.exists():
                front = [pl.lit(run.key).alias("run"), pl.lit(run.method).alias("method")]
                seed = pl.lit(run.seed, pl.Int64).alias("seed")
                frames.append(pl.read_parquet(path).select(*front, seed, pl.all()))
        return pl.concat(frames, how="diagonal_relaxed") if frames else pl.DataFrame()

    def _frame(self, name: str) -> pd.DataFrame:
        frames = []
        for run in self.runs:
            frame = run.table(name)
            for column, value in (("seed", run.seed), ("method", run.method), ("run", run.key)):
                frame.insert(0, column, value)
            frames.append(frame)
        return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


def load(path: str | Path) -> Record:
    """The record in a folder: one run, or all finished runs of a store but those that were made to choose settings."""
    folder = Path(path)
    if (folder / "card.json").exists():
        return Record([Run(folder)])
    cards = sorted((folder / "runs").glob("*/card.json"))
    if not cards:
        raise UserError(f"no finished run in {folder}: expected a run's folder or a store made by `driftline run`")
    return Record(run for run in (Run(card.parent) for card in cards) if run.is_result)
