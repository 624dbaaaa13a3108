"""The store: a folder of runs that several processes may write to at the same time.

runs/KEY/          a finished run, moved into place in one step; only its scores may be computed again
failed/KEY.json    why a run failed; removed when it later succeeds
stages/KEY         results that several runs share
work/KEY/          an unfinished run: checkpoint and parts, from which it resumes
matrices/NAME.json the cells of a matrix and why some are empty
status/NAME.json   progress of a sweep, for `driftline watch`; not needed to resume
labels/KEY.json    label and group of a run's method; safe to delete
used/NAME.json     when a version of a user's file was last used; safe to delete
index/NAME.parquet cards and scores of many runs, to be read fast; safe to delete
tables/NAME        cached tables of results of many runs; safe to delete
logs/KEY.txt       what a run or stage printed in a worker; no file if it printed nothing
locks/KEY          held while a run or stage is computed; the system frees it if the process dies

A name that begins with a dot is a file that is being written, or was when its process was killed.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path

import pandas as pd
from filelock import FileLock

from driftline.errors import DamagedFile, UserError, shorten
from driftline.io.atomic import disk_errors, sync_folder, write_json
from driftline.io.checksums import read_checked, write_checked
from driftline.record.card import CARD
from driftline.record.run import FRAMES, Record, Run, drop_damaged
from driftline.record.views import INDEXED
from driftline.store.index import RunIndex, is_outdated
from driftline.store.remote import RemoteStore, is_url, local_folder
from driftline.store.run_names import ambiguity_message, matches
from driftline.types import JsonObject

ABANDONED = 3600.0  # seconds after which a part of the index that is being written is what a killed process left
FORMAT = 4  # since 2, every file carries a checksum; since 4, keys hold revisions and not the version


class Store:
    """A folder of runs."""

    def __init__(self, folder: Path, remote: RemoteStore | None = None) -> None:
        """`remote`: the remote store that this folder is a copy of."""
        self.folder = folder
        self.remote = remote

    @classmethod
    def open(cls, folder: Path | str | None = None) -> Store:
        """Return the store in this folder or at this URL, else in `$DRIFTLINE_RUNS`, else in `./driftline-runs`.

        All runs of a remote store are downloaded.
        """
        store = cls._resolve(folder)
        if store.remote is not None:
            store.remote.download_all()
        return store

    @classmethod
    def create(cls, folder: Path | str | None = None) -> Store:
        """Return the store as `open` does, and create it if it is missing; a sweep downloads only what it needs."""
        store = cls._resolve(folder)
        if not store._format_file.exists():
            write_json(store._format_file, {"format": FORMAT})
        return store

    @classmethod
    def _resolve(cls, folder: Path | str | None) -> Store:
        name = folder or os.environ.get("DRIFTLINE_RUNS") or "driftline-runs"
        if isinstance(name, Path) or not is_url(name):
            return cls(local_folder(name))._check_format()
        remote = RemoteStore(name)
        remote.download_files(["store.json"])
        return cls(remote.folder, remote)._check_format()

    @property
    def name(self) -> str:
        """The folder, or the URL of a remote store."""
        return str(self.folder) if self.remote is None else self.remote.url

    @property
    def _format_file(self) -> Path:
        return self.folder / "store.json"

    def _check_format(self) -> Store:
        if self.folder.exists() and not self.folder.is_dir():
            raise UserError(f"{self.folder} is a file; runs are kept in a folder")
        if self._format_file.exists():
            try:
                if not self._format_file.is_file():  # a pipe would wait for ever
                    raise ValueError("not a file")
                version = int(json.loads(self._format_file.read_bytes())["format"])
            except (OSError, ValueError, KeyError, TypeError, ArithmeticError, RecursionError) as error:
                raise UserError(f"{self._format_file} is damaged: expected {{'format': {FORMAT}}}") from error
            if version != FORMAT:
                age, advice = ("a newer", "upgrade driftline, or ") if version > FORMAT else ("an older", "")
                raise UserError(
                    f"{self.folder} was made by {age} version of driftline (format {version}, this one reads "
                    f"{FORMAT}): {advice}choose another folder with --runs"
                )
        return self

    def run_folder(self, key: str) -> Path:
        return self.folder / "runs" / key

    def stage_path(self, key: str) -> Path:
        return self.folder / "stages" / f"{key}.safetensors"

    def work_folder(self, key: str) -> Path:
        return self.folder / "work" / key

    def log_path(self, key: str) -> Path:
        return self.folder / "logs" / f"{key}.txt"

    def finished(self, key: str) -> bool:
        """Return whether there is such a run; it may be damaged."""
        return os.path.exists(os.path.join(self.folder, "runs", key, CARD))

    def intact(self, key: str) -> bool:
        """Return whether there is such a run without damaged files."""
        return self.index.score_revisions(key) is not None

    @cached_property
    def index(self) -> RunIndex:
        """Cards and scores of the runs."""
        return RunIndex(self.folder)

    def has(self, key: str) -> bool:
        """Return whether there is a run or stage with this key; it may be damaged."""
        return self.finished(key) or self.stage_path(key).exists()

    @contextmanager
    def lock(self, key: str, timeout: float = -1) -> Iterator[None]:
        """Let only one process at a time compute what this key names; others wait, then find it done.

        After `timeout` seconds, raise TimeoutError; a negative number waits without limit.
        """
        path = self.folder / "locks" / key
        with disk_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            lock = FileLock(path)
            lock.acquire(timeout=timeout)
        try:
            yield
        finally:
            with suppress(OSError):  # Windows does not remove what is open
                path.unlink()  # while held: a process that waits for it sees that the file is gone, and makes another
            lock.release()

    def commit(self, key: str, folder: Path) -> None:
        """Move a finished run into place and remove its work folder."""
        target = self.run_folder(key)
        with disk_errors(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            if target.exists():
                shutil.rmtree(target)  # it is damaged, else it would not have been computed again
            sync_folder(folder)
            os.rename(folder, target)
            sync_folder(target.parent)  # before its checkpoint is removed, so that a power cut leaves one of the two
        self.remove_work_folder(key)

    def remove_work_folder(self, key: str) -> None:
        """Remove the checkpoint and parts of a finished run."""
        shutil.rmtree(self.work_folder(key), ignore_errors=True)

    def fail(self, key: str, job: JsonObject, reason: str, traceback: str = "") -> None:
        """Record that a run failed, and why; its checkpoint is kept."""
        write_checked(
            self.folder / "failed" / f"{key}.json",
            {"key": key, "run": job, "reason": reason, "traceback": traceback},
        )

    def failure(self, key: str) -> JsonObject | None:
        """Return the failure of the latest attempt at this key, if it failed."""
        return _read_or_none(self.folder / "failed" / f"{key}.json")

    def clear_failure(self, key: str) -> None:
        """Forget that an earlier attempt failed."""
        (self.folder / "failed" / f"{key}.json").unlink(missing_ok=True)

    def failures(self) -> list[JsonObject]:
        """Return the failures of all keys that have not succeeded since."""
        failures = map(_read_or_none, sorted((self.folder / "failed").glob("[!.]*.json")))
        return [failure for failure in failures if failure and not self.has(failure["key"])]

    def clean_up(self) -> None:
        """Remove what killed processes left: partial files, and work folders of finished runs.

        What another process is computing stays, and so do work folders of unfinished runs, which will be resumed.
        """
        for partial in (self.folder / "stages").glob(".*"):
            with suppress(TimeoutError), self.lock(partial.name.split(".")[1], timeout=0):
                partial.unlink(missing_ok=True)
        for part in (self.folder / "index").glob("*"):
            with suppress(OSError):
                hidden = part.name.startswith(".")
                if time.time() - part.stat().st_mtime > ABANDONED if hidden else is_outdated(part.name):
                    part.unlink()
        for work in (self.folder / "work").glob("*"):
            if self.finished(work.name):
                with suppress(TimeoutError), self.lock(work.name, timeout=0):
                    self.remove_work_folder(work.name)
        for lock in (self.folder / "locks").glob("*"):
            with suppress(TimeoutError), self.lock(lock.name, timeout=0):
                pass  # its process was killed; releasing the lock removes it

    def record(self, keys: list[str] | None = None, tables: Iterable[str] | None = None) -> Record:
        """Return the finished runs with these keys; by default all but those of searches and damaged ones.

        A note names the damaged ones. `tables`: those that will be read; only these are verified.
        """
        if keys is not None:
            return Record(map(self.index.run, keys))
        return Record(run for run in drop_damaged(self.index.runs(tables is None), tables) if run.is_final)

    def runs(self) -> list[Run]:
        """Return all finished runs, including damaged ones and those of searches."""
        return self.index.runs()

    def find(self, name: str) -> Run:
        """Return the run in this folder, or the one that `name` matches: start of its key, METHOD, or METHOD:SEED.

        A search run has no other name than its key.
        """
        if os.path.exists(Path(name) / CARD):  # also if it is too long for a name
            return Run(Path(name))
        every = drop_damaged(self.runs(), ())
        runs = [run for run in every if run.is_final]
        matching = [run for run in runs if matches(name, run.key, run.method, run.common.run.method.name, run.seed)]
        matching = matching or [run for run in every if run.key.startswith(name)]
        if len(matching) != 1:
            raise UserError(ambiguity_message(shorten(name), self.folder, runs, matching))
        return matching[0]

    def query(self, sql: str) -> pd.DataFrame:
        """Run SQL over all runs: the tables are runs, failures, answers, probes, diagnostics and scores."""
        from driftline.store.query import select

        named = [table for table in FRAMES if table in sql.lower()]  # other tables need not be verified
        record = self.record(tables=named)
        frames = {"runs": _runs_frame(record), "failures": _failures_frame(self.failures())}
        files, indexed = {}, {}
        for table in FRAMES:
            runs = record.runs if table in named else ()
            indexed[table] = [run for run in runs if run.entry and table in INDEXED]
            rest = (run for run in runs if not run.entry or table not in INDEXED)
            files[table] = [(path, run.key) for run in rest if (path := run.file(table))]
        return select(sql, frames, files, indexed)


def _read_or_none(path: Path) -> JsonObject | None:
    """Return the content of a JSON file; None if it is missing or damaged."""
    try:
        return read_checked(path)
    except DamagedFile:
        return None


def _runs_frame(record: Record) -> pd.DataFrame:
    rows = [
        {
            "run": run.key,
            "benchmark": card.run.benchmark,
            "data": card.run.data.display_name,
            "model": card.run.model.display_name,
            "method": card.label,
            "seed": run.seed,
            "made": run.finished_at,
            "forward_macs": compute.forward_macs,
            "backward_macs": compute.backward_macs,
        }
        for run in record.runs
        for card, compute in [(run.common, run.compute)]
    ]
    columns = ["run", "benchmark", "data", "model", "method", "seed", "made", "forward_macs", "backward_macs"]
    return pd.DataFrame(rows, columns=columns)


def _failures_frame(failures: list[JsonObject]) -> pd.DataFrame:
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
