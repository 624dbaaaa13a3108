"""Fingerprints of datasets whose images are in files, kept on disk so that images are decoded for them only once.

They are kept in the user's cache folder under `fingerprints`. The name of an entry is a hash of the names, sizes and
times of change of the files, of how images are decoded, and of all other columns.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from pathlib import Path

from driftline.errors import DiskError
from driftline.io.atomic import write_bytes


def recall(name: str, compute: Callable[[], str]) -> str:
    """Return the fingerprint of this name; compute and cache it if it is missing."""
    entry = folder() / name
    with contextlib.suppress(OSError, UnicodeDecodeError):
        if re.fullmatch("[0-9a-f]{16}", found := entry.read_text()):
            return found
    computed = compute()
    with contextlib.suppress(DiskError, OSError):  # the next process computes it again
        write_bytes(entry, computed.encode())
    return computed


def folder() -> Path:
    """Return the folder of cached fingerprints."""
    from platformdirs import user_cache_path

    return user_cache_path("driftline") / "fingerprints"
