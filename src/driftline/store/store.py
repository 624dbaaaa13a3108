"""Where records live: a folder of runs that many processes may write to at once.

runs/KEY/          a finished run, moved into place in one step and never changed
failed/KEY.json    why a run failed; removed when it later succeeds
stages/KEY         results that several runs share
work/KEY/          a run on its way: checkpoint and parts, from which it resumes
matrices/NAME.json the cells of a matrix and why some are empty
status/NAME.json   progress of a sweep, for `driftline watch`; not needed to resume
used/NAME.json     when a version of a user's file was last used; lost without harm
tables/NAME        cached tables of results of many runs; lost without harm
logs/KEY.txt       what was printed while a run or stage was being made elsewhere; no file if it was nothing
locks/KEY          held while a run or stage is being made; the system frees it if the process dies

A name that begins with a dot is a file on its way to its place, or what is left of one whose maker was killed.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pandas as pd
from filelock import FileLock

from driftline.errors import DamagedFile, UserError, shorten
from driftline.io.atomic import disk_errors, sync_folder, write_json
from driftline.io.checksums import read_checked, write_checked
from driftline.record.run import CARD, FRAMES, Record, Run, drop_damaged, is_intact
from driftline.store.remote import RemoteStore, is_url, local_folder
from driftline.store.run_names import ambiguity_message, matches

FORMAT = 3  # since 2, every file carries a checksum; since 3, keys come from spec/keys.py


class Store:
    """A folder of runs."""

    def __init__(self, folder: Path, remote: RemoteStore | None = None) -> None:
        """`mirror`: the place elsewhere that this folder is a copy of."""
        self.folder = folder
        self.remote = remote

    @classmethod
    def open(cls, folder: Path | str | None = None) -> Store:
        """The store in this folder or at this URL, else in `$DRIFTLINE_RUNS`, else in `./driftline-runs`.

        Of one that lies elsewhere, all runs are fetched.
        """
        store = cls._resolve(folder)
        if store.remote is not None:
            store.remote.download_all()
        return store

    @classmethod
    def create(cls, folder: Path | str | None = None) -> Store:
        """The same, made if it is missing; of one that lies elsewhere, a sweep fetches what it needs."""
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
        """As a user names it: the folder, or the URL of what it is a copy of."""
        return str(self.folder) if self.remote is None else self.remote.url

    @property
    def _format_file(self) -> Path:
        return self.folder / "store.json"

    def _check_format(self) -> Store:
        if self.folder.exists() and not self.folder.is_dir():
            raise UserError(f"{self.folder} is a file; runs are kept in a folder")
        if self._format_file.exists():
            try:
                version = int(json.loads(self._format_file.read_bytes())["format"])
            except (OSError, ValueError, KeyError, TypeError) as error:
                raise UserError(f"{self._format_file} is damaged: expected {{'format': {FORMAT}}}") from error
            if version != FORMAT:
                age, advice = (
                    ("a newer", "pip install --upgrade driftline, or ") if version > FORMAT else ("an older", "")
                )
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
        """Whether there is such a run; it may be damaged."""
        return (self.run_folder(key) / CARD).exists()

    def intact(self, key: str) -> bool:
        """Whether there is such a run, with every file as it was written."""
        return is_intact(self.run_folder(key))

    def has(self, key: str) -> bool:
        """Whether there is a run or stage with this key; it may be damaged."""
        return self.finished(key) or self.stage_path(key).exists()

    @contextmanager
    def lock(self, key: str, timeout: float = -1) -> Iterator[None]:
        """Only one process at a time makes what this key names; others wait, then find it done.

        With `patience`, no longer than so many seconds: then TimeoutError.
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
                path.unlink()  # while it is held: who waits for it sees that the name is gone, and makes another
            lock.release()

    def commit(self, key: str, folder: Path) -> None:
        """Move a finished run into place and forget its workings."""
        target = self.run_folder(key)
        with disk_errors(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            if target.exists():
                shutil.rmtree(target)  # it is damaged, else it would not have been made again
            sync_folder(folder)
            os.rename(folder, target)
            sync_folder(target.parent)  # before its checkpoint goes: after a power cut one of the two must be there
        self.remove_work_folder(key)

    def remove_work_folder(self, key: str) -> None:
        """Remove what a finished run was made from."""
        shutil.rmtree(self.work_folder(key), ignore_errors=True)

    def fail(self, key: str, job: dict[str, Any], reason: str, traceback: str = "") -> None:
        """Record that a run failed, and why; its checkpoint is kept."""
        write_checked(
            self.folder / "failed" / f"{key}.json",
            {"key": key, "run": job, "reason": reason, "traceback": traceback},
        )

    def failure(self, key: str) -> dict[str, Any] | None:
        """What is known of the latest attempt at this key, if it failed."""
        return _read_or_none(self.folder / "failed" / f"{key}.json")

    def clear_failure(self, key: str) -> None:
        """Forget that an earlier attempt failed."""
        (self.folder / "failed" / f"{key}.json").unlink(missing_ok=True)

    def failures(self) -> list[dict[str, Any]]:
        """What failed and has not succeeded since."""
        found = map(_read_or_none, sorted((self.folder / "failed").glob("[!.]*.json")))
        return [failure for failure in found if failure and not self.has(failure["key"])]

    def clean_up(self) -> None:
        """Remove what processes that were killed left half-made: files on their way, and workings of what is done.

        What another process is at work on, it leaves alone. Workings of unfinished runs stay: they will be resumed.
        """
        for partial in (self.folder / "stages").glob(".*"):
            with suppress(TimeoutError), self.lock(partial.name.split(".")[1], timeout=0):
                partial.unlink(missing_ok=True)
        for work in (self.folder / "work").glob("*"):
            if self.finished(work.name):
                with suppress(TimeoutError), self.lock(work.name, timeout=0):
                    self.remove_work_folder(work.name)
        for lock in (self.folder / "locks").glob("*"):
            with suppress(TimeoutError), self.lock(lock.name, timeout=0):
                pass  # whoever held it was killed; to let go of it removes it

    def record(self, keys: list[str] | None = None, tables: Iterable[str] | None = None) -> Record:
        """The finished runs with these keys, or all but those that were made to choose settings.

        Of all, damaged ones are left out with a note. `tables`: those that will be read; only these are verified.
        """
        if keys is not None:
            return Record(Run(self.run_folder(key)) for key in keys)
        return Record(run for run in drop_damaged(self.runs(), tables) if run.is_final)

    def runs(self) -> list[Run]:
        """All finished runs, damaged ones and those that were made to choose settings among them."""
        return [Run(path.parent) for path in sorted((self.folder / "runs").glob(f"*/{CARD}"))]

    def find(self, name: str) -> Run:
        """The run in that folder, or the one that `name` fits: its key's first letters, METHOD, or METHOD:SEED."""
        if os.path.exists(Path(name) / CARD):  # also if it is too long for a name
            return Run(Path(name))
        runs = self.record(tables=()).runs
        found = [run for run in runs if matches(name, run.key, run.card["run"], run.card["label"])]
        if len(found) != 1:
            raise UserError(ambiguity_message(shorten(name), self.folder, runs, found))
        return found[0]

    def query(self, sql: str) -> pd.DataFrame:
        """SQL over all runs: the tables are runs, failures, answers, probes and scores."""
        from driftline.store.query import select

        named = [table for table in FRAMES if table in sql.lower()]  # what is not asked for need not be verified
        record = self.record(tables=named)
        frames = {"runs": _runs_frame(record), "failures": _failures_frame(self.failures())}
        found = {table: [run.file(table) for run in record.runs if table in named] for table in FRAMES}
        return select(sql, frames, {table: [path for path in paths if path] for table, paths in found.items()})


def _read_or_none(path: Path) -> dict[str, Any] | None:
    """The content of a JSON file; None if there is none, it is damaged, or another process has just removed it."""
    try:
        return read_checked(path)
    except DamagedFile:
        return None


def _runs_frame(record: Record) -> pd.DataFrame:
    rows = [
        {
            "run": card["key"],
            "benchmark": card["run"]["benchmark"],
            "data": card["run"]["data"]["name"],
            "model": card["run"]["model"]["name"],
            "method": card["label"],
            "seed": card["run"]["seed"],
            "made": run.finished_at,
            "forward_macs": card["compute"]["forward_macs"],
            "backward_macs": card["compute"]["backward_macs"],
        }
        for run in record.runs
        for card in [run.card]
    ]
    columns = ["run", "benchmark", "data", "model", "method", "seed", "made", "forward_macs", "backward_macs"]
    return pd.DataFrame(rows, columns=columns)


def _failures_frame(failures: list[dict[str, Any]]) -> pd.DataFrame:
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
