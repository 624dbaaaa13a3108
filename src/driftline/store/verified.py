"""Runs whose checksums have been verified, so that a later sweep need not read their files again.

verified.json holds a signature of each run: names, sizes and times of its files, as Git's index does. A file that
changed has another signature and is read again. Tables are verified whenever they are read, and `driftline check` reads
everything.
"""

from __future__ import annotations

import hashlib
import os
import time
from contextlib import suppress
from pathlib import Path

from driftline.errors import DamagedFile, DiskError
from driftline.io.checksums import read_checked, write_checked
from driftline.record.run import is_intact

FILE = "verified.json"
SETTLED = 2.0  # seconds: a younger file may change again without a change of its time, which has the clock's resolution


class VerifiedRuns:
    """The signatures of the intact runs of a store."""

    def __init__(self, folder: Path) -> None:
        """`folder`: that of the store."""
        self._path = folder / FILE
        self._runs = os.path.join(folder, "runs")
        self._changed = False
        self._signatures: dict[str, str] = {}
        with suppress(DamagedFile):
            self._signatures = read_checked(self._path)["runs"]

    def is_intact(self, key: str) -> bool:
        """Return whether a run has no damaged file, reading it only if it was not verified as it is now."""
        folder = os.path.join(self._runs, key)
        signature, changed_at = _signature(folder)
        if signature and signature == self._signatures.get(key):
            return True
        if not is_intact(Path(folder)):
            return False
        if signature == _signature(folder)[0] and changed_at < time.time() - SETTLED:
            self._signatures[key], self._changed = signature, True
        return True

    def save(self) -> None:
        """Write the signatures, if there are new ones; errors of the disk are ignored."""
        if self._changed:
            with suppress(DiskError):
                write_checked(self._path, {"runs": self._signatures})
            self._changed = False


def _signature(folder: str) -> tuple[str, float]:
    """Return a hash of names, sizes and times of a folder's files, and when the latest changed; "" if it is missing."""
    try:
        with os.scandir(folder) as entries:
            stats = sorted((entry.name, entry.stat()) for entry in entries)
    except OSError:
        return "", 0.0
    text = " ".join(f"{name} {stat.st_size} {stat.st_mtime_ns} {stat.st_ctime_ns}" for name, stat in stats)
    latest = max((max(stat.st_mtime, stat.st_ctime) for _, stat in stats), default=0.0)
    return hashlib.sha256(text.encode()).hexdigest()[:32], latest
