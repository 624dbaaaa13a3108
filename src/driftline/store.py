"""Where records live: a folder of runs that many processes may write to at once.

runs/KEY/          a finished run, moved into place in one step and never changed
failed/KEY.json    why a run failed; removed when it later succeeds
stages/KEY         results that several runs share
work/KEY/          a run on its way: checkpoint and parts, from which it resumes
matrices/NAME.json the cells of a matrix and why some are empty
sweeps/NAME.json   how far a sweep is, for `driftline watch`; lost without harm
locks/KEY          held while a run or stage is being made; the system frees it if the process dies
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
from filelock import FileLock

from driftline.atomic import disk_errors, write_json
from driftline.errors import UserError
from driftline.record import TABLES, Record, Run

FORMAT = 1
SHOWN = 10  # candidates that an error lists


class Store:
    """A folder of runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def open(cls, folder: Path | str | None = None) -> Store:
        """The store in this folder, else in `$DRIFTLINE_RUNS`, else in `./driftline-runs`."""
        return cls(Path(folder or os.environ.get("DRIFTLINE_RUNS") or "driftline-runs"))._checked()

    @classmethod
    def create(cls, folder: Path | str | None = None) -> Store:
        """Like `open`, and made if it is missing."""
        store = cls.open(folder)
        if not store._marker.exists():
            write_json(store._marker, {"format": FORMAT})
        return store

    @property
    def _marker(self) -> Path:
        return self.folder / "store.json"

    def _checked(self) -> Store:
        if self.folder.exists() and not self.folder.is_dir():
            raise UserError(f"{self.folder} is a file; runs are kept in a folder")
        if self._marker.exists():
            try:
                made_by = int(json.loads(self._marker.read_text())["format"])
            except (ValueError, KeyError, TypeError) as error:
                raise UserError(f"{self._marker} is damaged: expected {{'format': {FORMAT}}}") from error
            if made_by > FORMAT:
                raise UserError(
                    f"{self.folder} was made by a newer version of driftline (format {made_by}, this one reads "
                    f"{FORMAT}): pip install --upgrade driftline, or choose another folder with --runs"
                )
        return self

    def run_folder(self, key: str) -> Path:
        return self.folder / "runs" / key

    def stage_path(self, key: str) -> Path:
        return self.folder / "stages" / f"{key}.safetensors"

    def work_folder(self, key: str) -> Path:
        return self.folder / "work" / key

    def finished(self, key: str) -> bool:
        return (self.run_folder(key) / "card.json").exists()

    @contextmanager
    def lock(self, key: str) -> Iterator[None]:
        """Only one process at a time makes what this key names; others wait, then find it done."""
        path = self.folder / "locks" / key
        with disk_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            lock = FileLock(path)
            lock.acquire()
        try:
            yield
        finally:
            lock.release()

    def commit(self, key: str, folder: Path) -> None:
        """Move a finished run into place and forget its workings."""
        target = self.run_folder(key)
        with disk_errors(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            if target.exists() and not self.finished(key):
                shutil.rmtree(target)  # its card is gone, so it cannot be read
            os.rename(folder, target)
        self.forget_workings(key)

    def forget_workings(self, key: str) -> None:
        """Remove what a finished run was made from."""
        shutil.rmtree(self.work_folder(key), ignore_errors=True)

    def fail(self, key: str, job: dict[str, Any], reason: str, traceback: str = "") -> None:
        """Record that a run failed, and why; its checkpoint is kept."""
        write_json(
            self.folder / "failed" / f"{key}.json",
            {"key": key, "run": job, "reason": reason, "traceback": traceback},
        )

    def succeeded(self, key: str) -> None:
        """Forget that an earlier attempt failed."""
        (self.folder / "failed" / f"{key}.json").unlink(missing_ok=True)

    def failures(self) -> list[dict[str, Any]]:
        """What failed and has not succeeded since."""
        found = [json.loads(path.read_text()) for path in sorted((self.folder / "failed").glob("*.json"))]
        return [failure for failure in found if not self.finished(failure["key"])]

    def record(self, keys: list[str] | None = None) -> Record:
        """The finished runs with these keys, or all but those that were made to choose settings."""
        if keys is not None:
            return Record(Run(self.run_folder(key)) for key in keys)
        found = Record(Run(path.parent) for path in sorted((self.folder / "runs").glob("*/card.json")))
        return Record(run for run in found.runs if run.is_result)

    def find(self, name: str) -> Run:
        """The run in that folder, or the one that `name` fits: its key's first letters, METHOD, or METHOD:SEED."""
        if (Path(name) / "card.json").exists():
            return Run(Path(name))
        runs = self.record().runs
        found = [run for run in runs if fits(name, run.key, run.card["run"], run.card["label"])]
        if len(found) != 1:
            raise UserError(_undecided(name, self.folder, runs, found))
        return found[0]

    def query(self, sql: str) -> pd.DataFrame:
        """SQL over all runs: the tables are runs, failures, answers, probes and scores."""
        import duckdb

        if not sql.strip():
            raise UserError('there is no query; try "select method, count(*) from runs group by all"')
        database = duckdb.connect()
        tables = {"runs": _overview(self.record()), "failures": _failures(self.failures())}
        for name, frame in tables.items():
            database.register(name, frame)
        for table in (*TABLES, "scores"):
            files = [str(run.folder / f"{table}.parquet") for run in self.record().runs]
            files = [file for file in files if Path(file).exists()]
            if not files:
                database.execute(f"create view {table} as select null as run where false")
            else:
                rows = database.read_parquet(files, filename=True, union_by_name=True)
                rows.project("* exclude (filename), parse_path(filename)[-2] as run").create_view(table)
        try:
            return database.execute(sql).df()
        except duckdb.Error as error:
            raise UserError(f"{str(error).splitlines()[0]}. Tables: runs, failures, answers, probes, scores") from error


def fits(name: str, key: str, job: Mapping[str, Any], label: str) -> bool:
    """Whether a run can be called by this name.

    >>> fits("er:0", "5d1f", {"method": {"name": "er"}, "seed": 0}, "er(lr=0.01)")
    True
    """
    methods = (label, job["method"]["name"])
    return key.startswith(name) or any(name in (method, f"{method}:{job['seed']}") for method in methods)


def _undecided(name: str, folder: Path, runs: Sequence[Run], found: Sequence[Run]) -> str:
    """Why a name does not say which run is meant, and which there are."""
    what = f"{len(found)} runs in {folder} can be called" if found else f"no finished run in {folder} is called"
    among = sorted(found or runs, key=lambda run: (run.card["label"], run.card["run"]["seed"]))
    named = [
        f"{run.key[:12]} ({run.card['label']}:{run.card['run']['seed']} in {run.card['run']['benchmark']}, "
        f"{run.card['run']['data']['name']}, {run.card['run']['model']['name']})"
        for run in among[:SHOWN]
    ]
    more = f" and {len(among) - SHOWN} more, see `driftline list runs`" if len(among) > SHOWN else ""
    which = f": {'; '.join(named)}{more}" if named else ""
    return f"{what} '{name}'; give a key, its first letters, METHOD or METHOD:SEED{which}"


def _overview(record: Record) -> pd.DataFrame:
    rows = [
        {
            "run": card["key"],
            "benchmark": card["run"]["benchmark"],
            "data": card["run"]["data"]["name"],
            "model": card["run"]["model"]["name"],
            "method": card["label"],
            "seed": card["run"]["seed"],
            "forward_macs": card["compute"]["forward_macs"],
            "backward_macs": card["compute"]["backward_macs"],
        }
        for card in record.cards
    ]
    columns = ["run", "benchmark", "data", "model", "method", "seed", "forward_macs", "backward_macs"]
    return pd.DataFrame(rows, columns=columns)


def _failures(failures: list[dict[str, Any]]) -> pd.DataFrame:
    rows = [
        {
            "run": failure["key"],
            "benchmark": failure["run"]["benchmark"],
            "method": failure["run"]["label"],
            "seed": failure["run"]["seed"],
            "reason": failure["reason"],
        }
        for failure in failures
    ]
    return pd.DataFrame(rows, columns=["run", "benchmark", "method", "seed", "reason"])
