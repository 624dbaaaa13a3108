"""What goes between machines that share no disk: finished stages, what a stage needs, and files that a user named."""

from __future__ import annotations

import hashlib
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from driftline import handed
from driftline.atomic import disk_errors, write_bytes
from driftline.checksums import read_checked, write_checked
from driftline.data import weights_file
from driftline.engine.stages import Stage
from driftline.errors import UserError
from driftline.jobs import Job
from driftline.record import RUNTIME
from driftline.store import Store

PIECE = 16 * 2**20
"""Files travel in pieces of at most so many bytes, so that no machine holds a long record in memory."""
HEAVY = 2**30
"""Files of more bytes in all do not travel: they must be on every machine."""

Piece = tuple[str, bytes]
"""A file's name and the next bytes of it."""


def pieces(files: dict[str, Path]) -> Iterator[Piece]:
    """The content of files by their names, piece by piece; an empty file is one empty piece."""
    for name, path in files.items():
        with path.open("rb") as file:
            content = file.read(PIECE)
            yield name, content
            while content := file.read(PIECE):
                yield name, content


def result_files(stage: Stage, store: Store) -> dict[str, Path]:
    """The files of a finished stage; one that is no run has a single file."""
    if not stage.is_run:
        return {"": store.stage_path(stage.key)}
    return {path.name: path for path in sorted(store.run_folder(stage.key).iterdir())}


class Arrival:
    """A finished stage that comes from elsewhere: nothing of it is in the store before all of it is."""

    def __init__(self, stage: Stage, store: Store) -> None:
        self._stage, self._store = stage, store
        self._folder = store.work_folder(stage.key) / f"arriving-{uuid.uuid4().hex[:8]}"

    def add(self, piece: Piece) -> None:
        """Keep the next piece."""
        name, content = piece
        with disk_errors(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)
            with (self._folder / (name or "result")).open("ab") as file:
                file.write(content)

    def settle(self, node: str) -> None:
        """All pieces are here: move them into place. `node`: where they were made."""
        if self._stage.is_run:
            path = self._folder / RUNTIME
            write_checked(path, {**read_checked(path), "node": node})
            self._store.commit(self._stage.key, self._folder)
        else:
            write_bytes(self._store.stage_path(self._stage.key), (self._folder / "result").read_bytes())
            self._store.forget_workings(self._stage.key)

    def drop(self) -> None:
        """It will never be whole."""
        shutil.rmtree(self._folder, ignore_errors=True)


def named_files(job: Job) -> dict[str, Path]:
    """The files and folders that a job names and that are here: a user's own code, weights, textures, matrices.

    The dataset travels as arrays, so files of its settings are not among them.
    """
    texts = set(handed.texts([job.options, job.model.settings, job.method.settings, _points(job)]))
    names = {job.data.name, job.model.name, job.method.name, *texts}
    found = {source: handed.file_of(source) for name in names for source in handed.sources(name)}
    for text in texts:
        place = weights_file(text) or handed.file_of(text)
        if text and ("/" in text or place.is_file()):
            found[text] = place
    return {name: path for name, path in found.items() if path.exists()}


def _points(job: Job) -> list[dict[str, Any]]:
    return list(job.contest.points) if job.contest else []


def state_of(path: Path) -> tuple[Any, ...]:
    """What changes when a file, or one in a folder, is written to."""
    seen = ((file, file.stat()) for file in _inside(path))
    return (path, *((file, stat.st_mtime_ns, stat.st_size) for file, stat in seen))


def packed(path: Path) -> dict[str, bytes] | None:
    """A file or a folder with all in it, by paths from its parent; None if it is too heavy to travel."""
    files = _inside(path)
    if sum(file.stat().st_size for file in files) > HEAVY:
        return None
    return {str(file.relative_to(path.parent)): file.read_bytes() for file in files}


def _inside(path: Path) -> list[Path]:
    return [path] if path.is_file() else sorted(inner for inner in path.rglob("*") if inner.is_file())


def unpacked(files: dict[str, bytes], folder: Path) -> None:
    """Write what was packed into this folder; a name that leads out of it is refused."""
    for name, content in files.items():
        path = folder / name
        if not path.resolve().is_relative_to(folder.resolve()):
            raise UserError(f"a file called {name} would be written outside of {folder}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def digest_of(files: dict[str, bytes]) -> str:
    """A short hash of packed files."""
    digest = hashlib.sha256()
    for name, content in files.items():
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:16]
