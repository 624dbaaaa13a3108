"""What happened: raw answers and probes, append-only, and a card that says under which protocol.

A run is a folder: `answers.parquet` and `probes.parquet` hold one row per answer, `diagnostics.parquet` numbers from inside
a learner, if it shows any, `card.json` all that is needed to read them, `scores.parquet` what the benchmark's metrics
made of them, `runtime.json` the circumstances that must not matter (wall-clock time, machine). Metrics are functions of
the rows, so a new metric scores old runs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from driftline.errors import DamagedFile, MissingExtra, UserError, unknown_name
from driftline.io.atomic import write_then_rename
from driftline.io.checksums import file_hash, read_checked, write_checked
from driftline.record.parquet import list_column, read_rows, top_k, write_rows
from driftline.tasks import Task
from driftline.types import Answers, Probe, Samples, Step

if TYPE_CHECKING:
    import polars as pl

TOP_K = 5  # how many of the best scores an answer keeps
TABLES = ("answers", "probes", "diagnostics")
FRAMES = (*TABLES, "scores")
CARD, RUNTIME = "card.json", "runtime.json"
MAX_LISTED = 5  # damaged runs that a note names
log = logging.getLogger("driftline")


class Recorder(Protocol):
    """What the loop reports to."""

    def add_answers(self, step: Step, answers: Answers) -> None:
        """Record the answers to a step, given before any of its labels were revealed."""

    def add_probe(self, step: Step, probe: Probe, answers: Answers) -> None:
        """Record the answers to a probe after a step."""

    def add_diagnostics(self, step: Step, diagnostics: Mapping[str, float]) -> None:
        """Record the learner's diagnostics after a step."""


class MemoryRecorder:
    """Recorder without files: `answers` per step, and `probes` with one row per answer."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._probes: list[pd.DataFrame] = []
        self.answers: list[np.ndarray] = []

    @property
    def probes(self) -> pd.DataFrame:
        return pd.concat(self._probes, ignore_index=True).astype({"step": np.int16})

    def add_answers(self, step: Step, answers: Answers) -> None:
        self.answers.append(np.asarray(answers.prediction))

    def add_probe(self, step: Step, probe: Probe, answers: Answers) -> None:
        columns = {"id": probe.samples.id, "truth": probe.samples.y, "prediction": answers.prediction}
        correct = self._task.correct(answers.prediction, probe.samples.y)
        self._probes.append(pd.DataFrame({**columns, "correct": correct, "step": step.index, "probe": probe.name}))

    def add_diagnostics(self, step: Step, diagnostics: Mapping[str, float]) -> None:
        """Ignore diagnostics."""


class FileRecorder:
    """Recorder that collects rows in memory; `flush` moves them to a part file, `finish` joins the parts."""

    def __init__(self, task: Task, parts: Path, compute: Callable[[], tuple[int | None, int | None]]) -> None:
        self._task = task
        self._parts = parts
        self._compute = compute
        self._rows: dict[str, list[pa.Table]] = {table: [] for table in TABLES}
        self.parts: list[dict[str, str]] = []
        """For each part, the hash of each table's file."""

    def add_answers(self, step: Step, answers: Answers) -> None:
        columns = self._columns(step, step.samples, answers)
        if answers.scores is not None:
            best = top_k(answers.scores, TOP_K)
            columns["top"] = list_column(best.astype(np.int32))
            columns["top_scores"] = list_column(np.take_along_axis(answers.scores, best, 1).astype(np.float32))
        if answers.distance is not None:
            columns["distance"] = answers.distance.astype(np.float32)
        self._rows["answers"].append(pa.table(columns))

    def add_probe(self, step: Step, probe: Probe, answers: Answers) -> None:
        columns = self._columns(step, probe.samples, answers)
        columns["probe"] = pa.repeat(probe.name, len(answers))
        self._rows["probes"].append(pa.table(columns))

    def add_diagnostics(self, step: Step, diagnostics: Mapping[str, float]) -> None:
        if diagnostics:
            at = {
                "step": np.full(len(diagnostics), step.index, np.int32),
                "time": pa.repeat(step.time, len(diagnostics)),
            }
            values = {"gauge": pa.array(list(diagnostics)), "value": np.array(list(diagnostics.values()), float)}
            self._rows["diagnostics"].append(pa.table({**at, **values}))

    def flush(self) -> None:
        """Make everything so far safe on disk."""
        hashes = {}
        for table, rows in self._rows.items():
            if rows:
                joined = pa.concat_tables(rows)
                with write_then_rename(self._part(table, len(self.parts))) as path:
                    pq.write_table(joined, path, compression="none", use_dictionary=False, write_page_checksum=True)
                    hashes[table] = file_hash(path)
                rows.clear()
        self.parts.append(hashes)

    def finish(self, folder: Path) -> None:
        """Write the finished tables into a folder."""
        self.flush()
        for table in TABLES:
            parts = [self._part(table, k) for k, hashes in enumerate(self.parts) if table in hashes]
            write_rows(folder / f"{table}.parquet", map(read_rows, parts))

    def state(self) -> list[dict[str, str]]:
        return self.parts

    def restore(self, state: list[dict[str, str]]) -> None:
        """Go on after these parts; one that is missing or damaged raises, because its rows are lost."""
        for k, hashes in enumerate(state):
            for table, known in hashes.items():
                if file_hash(self._part(table, k)) != known:
                    raise DamagedFile(self._part(table, k), "its checksum differs")
        self.parts = list(state)

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
            "prediction": np.array(answers.prediction),  # a copy: the learner may still hold it
            "correct": self._task.correct(answers.prediction, samples.y).astype(np.float32),
            "confidence": confidence.astype(np.float32),
            "forward_macs": pa.repeat(pa.scalar(forward, pa.int64()), n),
            "backward_macs": pa.repeat(pa.scalar(backward, pa.int64()), n),
        }


def write_card(folder: Path, card: dict[str, Any]) -> None:
    """Write the card of a run: with the hash and the rows of every table beside it, and a checksum of its own."""
    tables = sorted(folder.glob("*.parquet"))
    files = {path.name: {"sha256": file_hash(path), "rows": pq.read_metadata(path).num_rows} for path in tables}
    write_checked(folder / CARD, {**card, "files": files})


@dataclass(frozen=True)
class Run:
    """One finished run on disk: one method, one seed."""

    folder: Path

    @cached_property
    def card(self) -> dict[str, Any]:
        """The protocol card; raise Damaged if it is not what was written."""
        return read_checked(self.folder / CARD)

    @property
    def key(self) -> str:
        return str(self.card["key"])

    @property
    def method(self) -> str:
        """The method's name, with the settings in which it differs from its defaults."""
        return str(self.card["label"])

    @property
    def is_final(self) -> bool:
        """Whether it was made for its own sake, and not to choose settings by."""
        return bool(self.card["run"].get("purpose") != "search")

    @property
    def seed(self) -> int:
        return int(self.card["run"]["seed"])

    @cached_property
    def finished_at(self) -> datetime:
        """When it was finished; raise Damaged if the note of that is missing or not what was written."""
        return datetime.fromisoformat(read_checked(self.folder / RUNTIME)["finished"])

    def rows(self, name: str) -> int:
        """The number of rows of a table, as its card says; 0 if the run has none."""
        return int(self.card["files"].get(f"{name}.parquet", {"rows": 0})["rows"])

    def file(self, name: str) -> Path | None:
        """The file of a table, its checksum verified; None if the run has no such table. Raise Damaged."""
        path = self.folder / f"{name}.parquet"
        if path.name not in self.card["files"]:
            return None
        if path.name not in self._verified and file_hash(path) != self.card["files"][path.name]["sha256"]:
            raise DamagedFile(path, "its checksum differs")
        self._verified.add(path.name)
        return path

    @cached_property
    def _verified(self) -> set[str]:
        return set()

    def verify(self, tables: Iterable[str] | None = None) -> None:
        """Raise Damaged if the card or one of these tables is not what was written; None: any file of the run."""
        written = [Path(name).stem for name in self.card["files"]]
        for name in written if tables is None else tables:
            self.file(name)
        _ = self.finished_at

    def table(self, name: str) -> pd.DataFrame:
        """`answers`, `probes` or `scores` as a frame; empty if the run has none."""
        path = self.file(name)
        return read_rows(path).to_pandas() if path else pd.DataFrame()


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
        """`answers`, `probes`, `diagnostics` or `scores` of all runs as a polars frame, with the same columns in front.

        A column that one run lacks is null there; one that is numbers here and text there becomes text.
        """
        if name not in FRAMES:
            raise unknown_name("frame", name, FRAMES)
        try:
            import polars as pl
        except ModuleNotFoundError as error:
            if error.name != "polars":
                raise
            raise MissingExtra("a polars frame", "polars") from None
        frames = []
        for run in self.runs:
            if path := run.file(name):
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


def is_intact(folder: Path) -> bool:
    """Whether a folder is a finished run with every file as it was written."""
    try:
        Run(folder).verify()
    except DamagedFile:
        return False
    return True


def drop_damaged(runs: Iterable[Run], tables: Iterable[str] | None = None) -> list[Run]:
    """The runs whose card and tables are as they were written; a note names those that are left out."""
    kept, reasons, tables = [], {}, None if tables is None else tuple(tables)
    for run in runs:
        try:
            run.verify(tables)
            kept.append(run)
        except DamagedFile as damage:
            reasons[run.folder.name] = f"{damage.path.name}: {damage.reason}"
    if reasons:
        listed = "; ".join(f"{key} ({reason})" for key, reason in list(reasons.items())[:MAX_LISTED])
        more = f" and {len(reasons) - MAX_LISTED} more" if len(reasons) > MAX_LISTED else ""
        log.warning(f"note: {len(reasons)} damaged run(s) left out: {listed}{more}. See `driftline check`")
    return kept


def load(path: str | Path) -> Record:
    """The record in a folder: one run, or all finished runs of a store but those that were made to choose settings."""
    folder = Path(path)
    if (folder / CARD).exists():
        return Record([Run(folder)])
    cards = sorted((folder / "runs").glob(f"*/{CARD}"))
    if not cards:
        raise UserError(f"no finished run in {folder}: expected a run's folder or a store made by `driftline run`")
    return Record(run for run in drop_damaged(Run(card.parent) for card in cards) if run.is_final)
