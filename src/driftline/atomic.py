"""Files that are either whole or absent: written beside their place, flushed, then renamed into it."""

from __future__ import annotations

import errno
import json
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from driftline.errors import DiskError

REASONS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EROFS: "the disk is read-only",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.ENOENT: "there is no such folder, and none can be made there",
    errno.ENOTDIR: "a part of this path is a file, not a folder",
    errno.EEXIST: "a part of this path is a file, not a folder",
    errno.EISDIR: "it is a folder; name a file in it",
    errno.ENAMETOOLONG: "the name is too long",
}


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn what a disk may refuse into a sentence; nothing that was finished before is touched."""
    try:
        yield
    except OSError as error:
        if error.errno not in REASONS:
            raise
        raise DiskError(f"cannot write {path}: {REASONS[error.errno]}. What was finished before is kept") from error


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path to write to; it takes the place of `path` when the block ends well."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    with disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield temporary
            with open(temporary, "rb") as file:
                os.fsync(file.fileno())
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)


def write_bytes(path: Path, content: bytes) -> None:
    """A file with this content, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def write_json(path: Path, content: Any) -> None:
    """A readable JSON file, the same for the same content."""
    text = json.dumps(content, indent=1, sort_keys=True, allow_nan=False, ensure_ascii=False)
    write_bytes(path, (text + "\n").encode())
