"""Files between machines that share no disk: results in chunks, and files that a user named."""

from __future__ import annotations

import hashlib
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from driftline.engine.stages import Stage
from driftline.errors import UserError
from driftline.io.atomic import disk_errors
from driftline.store.store import Store

CHUNK = 16 * 2**20
"""Maximum bytes of a chunk, so that no machine holds a long record in memory."""
MAX_TREE = 2**30
"""Files and folders of more bytes are not sent: they must be on every machine."""

Chunk = tuple[str, bytes]
"""A file's name and the next bytes of it."""


def iter_chunks(files: dict[str, Path]) -> Iterator[Chunk]:
    """Yield the content of files chunk by chunk; an empty file is one empty chunk."""
    for name, path in files.items():
        with path.open("rb") as file:
            content = file.read(CHUNK)
            yield name, content
            while content := file.read(CHUNK):
                yield name, content


class IncomingResult:
    """The result of a stage from another machine; nothing of it is in the store before all of it has arrived."""

    def __init__(self, stage: Stage, store: Store) -> None:
        self._stage, self._store = stage, store
        self._folder = store.work_folder(stage.key) / f"arriving-{uuid.uuid4().hex[:8]}"

    def add(self, chunk: Chunk) -> None:
        """Write the next chunk."""
        name, content = chunk
        with disk_errors(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)
            with (self._folder / name).open("ab") as file:
                file.write(content)

    def commit(self, node: str) -> None:
        """Move the complete result, computed on `node`, into the store."""
        self._stage.commit(self._folder, self._store, node)

    def discard(self) -> None:
        """Remove an incomplete result."""
        shutil.rmtree(self._folder, ignore_errors=True)


def file_state(path: Path) -> tuple[Any, ...]:
    """Return what changes when a file, or one in a folder, is written to."""
    seen = ((file, file.stat()) for file in _files_in(path))
    return (path, *((file, stat.st_mtime_ns, stat.st_size) for file, stat in seen))


def read_tree(path: Path) -> dict[str, bytes] | None:
    """Return a file, or all files of a folder, by their paths from its parent; None if it is too large to send."""
    files = _files_in(path)
    if sum(file.stat().st_size for file in files) > MAX_TREE:
        return None
    return {str(file.relative_to(path.parent)): file.read_bytes() for file in files}


def _files_in(path: Path) -> list[Path]:
    return [path] if path.is_file() else sorted(inner for inner in path.rglob("*") if inner.is_file())


def write_tree(files: dict[str, bytes], folder: Path) -> None:
    """Write what `read_tree` returned into a folder; a name that leads out of it is refused."""
    for name, content in files.items():
        path = folder / name
        if not path.resolve().is_relative_to(folder.resolve()):
            raise UserError(f"a file called {name} would be written outside of {folder}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def tree_digest(files: dict[str, bytes]) -> str:
    """Return a short hash of what `read_tree` returned."""
    digest = hashlib.sha256()
    for name, content in files.items():
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:16]
