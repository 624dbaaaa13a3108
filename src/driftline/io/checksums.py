"""Checksums: hashes of files, and JSON files that carry a hash of their own content."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from driftline.errors import DamagedFile
from driftline.io.atomic import write_json

CHECKSUM_FIELD = "checksum"


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file's content; raise DamagedFile if it cannot be read."""
    check_regular(path)
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DamagedFile(path, str(error.strerror)) from error


def write_checked(path: Path, content: dict[str, Any]) -> None:
    """Write a JSON object together with its checksum."""
    write_json(path, {**content, CHECKSUM_FIELD: _checksum(content)})


def read_checked(path: Path) -> dict[str, Any]:
    """Read a JSON object that `write_checked` wrote; raise DamagedFile if it is not what was written."""
    check_regular(path)
    try:
        content: dict[str, Any] = json.loads(path.read_bytes())
        expected = content.pop(CHECKSUM_FIELD)
    except OSError as error:
        raise DamagedFile(path, str(error.strerror)) from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedFile(path, "it is not JSON with a checksum") from error
    if expected != _checksum(content):
        raise DamagedFile(path, "its checksum differs")
    return content


def check_regular(path: Path) -> None:
    """Raise DamagedFile for what is missing or a folder, and for a pipe or a device, which could wait for ever."""
    if not path.is_file():
        raise DamagedFile(path, "it is not a file" if path.exists() else "it is missing")


def _checksum(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
