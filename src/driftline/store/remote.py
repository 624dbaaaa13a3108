"""Remote stores: a folder of runs at a URL, such as a bucket or a server, reached through fsspec.

Commands work on a local copy: they download what they need first and upload what they finish. A file is uploaded
under a temporary name and then moved, and a run's card comes last. So every file without a temporary name is complete,
and a folder without a card is not a run.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from driftline.errors import DiskError, MissingExtra, UserError, shorten
from driftline.io import serialization
from driftline.record.card import CARD
from driftline.record.run import Run

MUTABLE = ("failed", "labels", "matrices", "used")
"""Folders of single files that may change."""


def is_url(name: object) -> bool:
    """Return whether the name of a store is a URL.

    >>> is_url("s3://bucket/runs"), is_url("runs")
    (True, False)
    """
    return isinstance(name, str) and "://" in name


def local_folder(name: str | Path) -> Path:
    """Return the folder of a local store, with `~` expanded; refuse an impossible name."""
    if re.match(r"[A-Za-z][\w+.-]+:/", str(name)):
        raise UserError(f"--runs {name} looks like a URL; write it as s3://bucket/folder, and in Python as a text")
    try:
        folder = Path(name).expanduser()
        with suppress(FileNotFoundError, NotADirectoryError):
            os.stat(folder)
    except (OSError, ValueError, RuntimeError) as error:  # too long, a null character, no such user
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"--runs {shorten(str(name))!r} cannot be a folder: {reason}") from error
    return folder


class RemoteStore:
    """A remote folder and its local copy."""

    def __init__(self, url: str) -> None:
        try:
            import fsspec
        except ModuleNotFoundError:
            raise MissingExtra(f"--runs {url}", "remote") from None
        from platformdirs import user_cache_path

        self.url = url.rstrip("/")
        self.folder = user_cache_path("driftline") / "stores" / hashlib.sha256(self.url.encode()).hexdigest()[:16]
        try:
            with self._remote_errors("use"):
                self._filesystem, root = fsspec.core.url_to_fs(self.url)
        except (ImportError, ValueError) as error:
            raise UserError(f"--runs {url}: {error}") from error
        self._root = str(root).rstrip("/")

    def finished(self) -> set[str]:
        """Return what is complete in the remote folder: `runs/KEY` and `stages/KEY.safetensors`."""
        found = [name for folder in ("runs", "stages") for name in self._names(folder)]
        runs = {name.removesuffix(f"/{CARD}") for name in found if name.startswith("runs/") and name.endswith(CARD)}
        return runs | {name for name in found if name.startswith("stages/") and not _is_partial(name)}

    def download(self, names: Iterable[str], force: bool = False) -> None:
        """Download these runs and stages unless the local copy has them intact; with `force`, all of them."""
        missing = [name for name in names if force or not self._is_local(name)]
        runs = self._files_of_runs() if any(name.startswith("runs/") for name in missing) else {}
        for name in missing:
            temporary = self.folder / "work" / f"fetched-{uuid.uuid4().hex[:8]}"
            for file in runs.get(name, [name]):
                self._get(file, temporary / Path(file).name)
            self._move_into_place(temporary if name in runs else temporary / Path(name).name, self.folder / name)
            shutil.rmtree(temporary, ignore_errors=True)

    def download_all(self) -> None:
        """Download all runs, failures and other files that commands read."""
        self.download_files(MUTABLE)
        remote_names = self.finished()
        for key in {Path(name).stem for name in remote_names}:  # failed once, and succeeded since
            (self.folder / "failed" / f"{key}.json").unlink(missing_ok=True)
        self.download(sorted(name for name in remote_names if name.startswith("runs/")))

    def download_files(self, places: Iterable[str]) -> None:
        """Download single files, which may have changed."""
        for name in [name for place in places for name in self._names(place) if not _is_partial(name)]:
            temporary = self.folder / "work" / f"fetched-{uuid.uuid4().hex[:8]}"
            self._get(name, temporary)
            self._move_into_place(temporary, self.folder / name)

    def upload(self, name: str) -> None:
        """Upload a run, a stage or a single file; a run's card goes last."""
        source = self.folder / name
        files = [source]
        if source.is_dir():
            files = [*(path for path in source.iterdir() if path.name != CARD), source / CARD]
        with self._remote_errors("write to"):
            self._remove_card(name)  # of a damaged run that this one replaces
            for path in files:
                target = f"{self._root}/{path.relative_to(self.folder).as_posix()}"
                folder, _, last = target.rpartition("/")
                temporary = f"{folder}/.{last}.{uuid.uuid4().hex[:8]}"
                self._filesystem.makedirs(folder, exist_ok=True)
                self._filesystem.put_file(str(path), temporary)
                self._filesystem.mv(temporary, target)

    def remove(self, name: str) -> None:
        """Remove a run, a stage or a single file from the remote folder; a run's card goes first."""
        with self._remote_errors("write to"):
            self._remove_card(name)
            if self._filesystem.exists(f"{self._root}/{name}"):
                self._filesystem.rm(f"{self._root}/{name}", recursive=True)

    def _remove_card(self, name: str) -> None:
        card = f"{self._root}/{name}/{CARD}"
        if name.startswith("runs/") and self._filesystem.exists(card):
            self._filesystem.rm_file(card)

    def _is_local(self, name: str) -> bool:
        path = self.folder / name
        return Run(path).is_intact() if name.startswith("runs/") else serialization.is_complete(path)

    def _files_of_runs(self) -> dict[str, list[str]]:
        files: dict[str, list[str]] = {}
        for name in self._names("runs"):
            if not _is_partial(name):
                files.setdefault(name.rpartition("/")[0], []).append(name)
        return files

    def _names(self, place: str) -> list[str]:
        """Return the paths in the store of all files in a remote folder, or of the file itself."""
        with self._remote_errors("read"):
            self._filesystem.invalidate_cache()
            with suppress(FileNotFoundError):
                found = self._filesystem.find(f"{self._root}/{place}")
                return [str(name)[len(self._root) + 1 :] for name in found]
        return []

    def _get(self, name: str, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with self._remote_errors("read"):
            self._filesystem.get_file(f"{self._root}/{name}", str(path))

    def _move_into_place(self, source: Path, target: Path) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir() and target.is_dir():
            shutil.rmtree(target)  # without a card, damaged, or to be downloaded again
        os.replace(source, target)

    @contextmanager
    def _remote_errors(self, action: str) -> Iterator[None]:
        """Turn errors of the remote file system into a DiskError that names the URL and says that nothing is lost."""
        try:
            yield
        except (ImportError, ValueError, UserError):
            raise
        except Exception as error:  # every file system has errors of its own
            message: Any = str(error) or type(error).__name__
            advice = f"What was finished is in {self.folder}, and the same command goes on from there"
            raise DiskError(f"cannot {action} {self.url}: {message}. {advice}") from error


def _is_partial(name: str) -> bool:
    return name.rpartition("/")[2].startswith(".")
