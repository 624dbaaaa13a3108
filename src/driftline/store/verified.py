"""Runs whose checksums have been verified, so that a later sweep need not read their files again.

verified.json holds a signature of each run, that is, names, sizes and times of its files as in Git's index, and the
revisions of its scores. A run whose signature differs is read again. Tables are verified whenever they are read, and
`driftline check` reads everything.
"""

from __future__ import annotations

import hashlib
import os
import time
from contextlib import suppress
from pathlib import Path

from driftline.errors import DamagedFile, DiskError
from driftline.io.checksums import read_checked, write_checked
from driftline.record.run import Run

FILE = "verified.json"
SETTLED = 2.0  # seconds: a younger file may change again without a change of its time, which has the clock's resolution


class VerifiedRuns:
    """The signatures and revisions of the intact runs of a store."""

    def __init__(self, folder: Path) -> None:
        """`folder`: that of the store."""
        self._path = folder / FILE
        self._runs = os.path.join(folder, "runs")
        self._changed = False
        self._known: dict[str, tuple[str, dict[str, int]]] = {}
        with suppress(DamagedFile):
            self._known = read_checked(self._path)["runs"]

    def is_intact(self, key: str) -> bool:
        """Return whether there is such a run without damaged files."""
        return self.score_revisions(key) is not None

    def score_revisions(self, key: str) -> dict[str, int] | None:
        """Return the revisions of a run's scores; None if it is missing or damaged.

        The run is read only if it was not verified as it is now.
        """
        folder = os.path.join(self._runs, key)
        signature, changed_at = _signature(folder)
        known, revisions = self._known.get(key, ("", {}))
        if signature and signature == known:
            return revisions
        run = Run(Path(folder))
        if not run.is_intact():
            return None
        revisions = run.card.code.score_revisions
        if signature == _signature(folder)[0] and changed_at < time.time() - SETTLED:
            self._known[key], self._changed = (signature, revisions), True
        return revisions

    def save(self) -> None:
        """Write what is known, if some of it is new; errors of the disk are ignored."""
        if self._changed:
            with suppress(DiskError):
                write_checked(self._path, {"runs": self._known})
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
