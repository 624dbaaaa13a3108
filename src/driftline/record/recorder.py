"""Recorders: collect a run's answers, probes and diagnostics.

Answers and probes have one row per answer; diagnostics are numbers that a learner reports. Metrics are functions of
these rows, so a new metric scores old runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from driftline.errors import DamagedFile, UserError
from driftline.io.atomic import write_then_rename
from driftline.io.checksums import file_hash
from driftline.record.parquet import list_column, read_rows, top_k, write_rows
from driftline.tasks import Task
from driftline.types import Answers, JsonObject, Probe, Samples, Step

TOP_K = 5  # number of highest scores recorded per answer
TABLES = ("answers", "probes", "diagnostics")


class Recorder(Protocol):
    """Receiver of everything the loop observes."""

    def add_answers(self, step: Step, answers: Answers) -> None:
        """Record the answers to a step, given before any of its labels were revealed."""

    def add_probe(self, step: Step, probe: Probe, answers: Answers) -> None:
        """Record the answers to a probe after a step."""

    def add_diagnostics(self, step: Step, diagnostics: Mapping[str, float]) -> None:
        """Record the learner's diagnostics after a step."""


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
        """Write the rows collected so far to a part file."""
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
        """Continue after these parts. Raise DamagedFile if one is missing or damaged."""
        for k, hashes in enumerate(state):
            for table, known in hashes.items():
                if file_hash(self._part(table, k)) != known:
                    raise DamagedFile(self._part(table, k), "its checksum differs")
        self.parts = list(state)

    def _part(self, table: str, number: int) -> Path:
        return self._parts / f"{table}-{number:06d}.parquet"

    def _columns(self, step: Step, samples: Samples, answers: Answers) -> JsonObject:
        forward, backward = self._compute()
        n = len(samples)
        if len(answers) != n:
            raise UserError(f"a learner received {n} inputs and returned {len(answers)} answers")
        confidence = np.full(n, np.nan) if answers.scores is None else answers.scores.max(axis=1)
        group = {} if samples.group is None else {"group": np.asarray(samples.group)}
        return {
            "step": np.full(n, step.index, np.int32),
            "time": pa.repeat(step.time, n),
            "id": np.asarray(samples.id),
            **group,
            "truth": np.asarray(samples.y),
            "prediction": np.array(answers.prediction),  # a copy, since the learner may still change it
            "correct": self._task.correct(answers.prediction, samples.y).astype(np.float32),
            "confidence": confidence.astype(np.float32),
            "forward_macs": pa.repeat(pa.scalar(forward, pa.int64()), n),
            "backward_macs": pa.repeat(pa.scalar(backward, pa.int64()), n),
        }
