"""Atomic writes: a file is written under a temporary name, flushed to the disk, then renamed.

A file that exists is complete, even after a power failure. One that was renamed in the last seconds before the failure
may be lost: call `sync_folder` before deleting what a new file replaces.
"""

from __future__ import annotations

import errno
import json
import os
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from driftline.errors import DiskError

ERROR_MESSAGES = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the file would be larger than the system allows",
    errno.EROFS: "the disk is read-only",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.ENOTDIR: "a part of this path is a file, not a folder",
    errno.EEXIST: "a part of this path is a file, not a folder",
    errno.EISDIR: "it is a folder; name a file in it",
    errno.ENAMETOOLONG: "the name is too long",
}


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn errors of the disk into a DiskError that names the file and the reason."""
    try:
        yield
    except OSError as error:
        if error.errno not in ERROR_MESSAGES:
            raise
        raise DiskError(
            f"cannot write {path}: {ERROR_MESSAGES[error.errno]}. What was finished before is kept"
        ) from error


def check_file_name(path: Path) -> None:
    """Refuse an empty name, a null character or a URL."""
    if not path.name or "\0" in str(path) or re.match(r"[A-Za-z][\w+.-]+:/", str(path)):
        raise DiskError(f"cannot write {str(path)!r}: it is not the name of a file")


@contextmanager
def write_then_rename(path: Path) -> Iterator[Path]:
    """Yield a temporary path to write to; it is renamed to `path` if the block raises nothing."""
    check_file_name(path)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    with disk_errors(path):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except FileNotFoundError as error:
            raise DiskError(f"cannot write {path}: its folder cannot be made") from error
        try:
            temporary.touch()  # fails in /proc
            temporary.unlink()
        except FileNotFoundError as error:
            raise DiskError(f"cannot write {path}: its folder is not writable") from error
        try:
            yield temporary
            with open(temporary, "rb+") as file:  # Windows flushes only what is open for writing
                os.fsync(file.fileno())
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Flush the names in a folder to the disk, which Windows cannot do."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file atomically."""
    with write_then_rename(path) as temporary:
        temporary.write_bytes(content)


def write_json(path: Path, content: object) -> None:
    """Write a readable JSON file; equal content gives equal bytes."""
    text = json.dumps(content, indent=1, sort_keys=True, allow_nan=False, ensure_ascii=False)
    write_bytes(path, (text + "\n").encode())
