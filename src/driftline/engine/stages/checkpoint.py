"""Checkpoints: the state of a run between two steps, from which an interrupted run resumes."""

from __future__ import annotations

import os
import time
from pathlib import Path

from driftline.io import serialization
from driftline.lazy_rows import RowSource
from driftline.spec.keys import sources_hash
from driftline.types import JsonObject

CHECKPOINT_SECONDS = float(os.environ.get("DRIFTLINE_CHECKPOINT_SECONDS", "5"))
WRITE_TIME_FACTOR = 20  # writing takes at most a twentieth of the time


class Checkpoint:
    """All parts of a run in one file, replaced atomically; images of `source` are saved by their numbers."""

    def __init__(self, path: Path, parts: JsonObject, source: RowSource | None = None) -> None:
        self._path = path
        self._parts = parts
        self._source = source
        self._last = time.monotonic()
        self._took = 0.0

    def resume(self) -> int:
        """Restore the parts as an interrupted run left them; return the number of steps done."""
        if not self._path.exists():
            return 0
        saved = serialization.load(self._path, self._source)
        if saved["code"] != sources_hash():
            raise ValueError("the checkpoint was written by another state of the code")
        for name, part in self._parts.items():
            part.restore(saved[name])
        return int(saved["done"])

    def save_if_due(self, done: int) -> None:
        """Save the parts after `done` steps, unless the last checkpoint is recent."""
        started = time.monotonic()
        pause = max(CHECKPOINT_SECONDS, WRITE_TIME_FACTOR * self._took)
        if CHECKPOINT_SECONDS and started - self._last < pause:  # 0: after every step
            return
        self._parts["recorder"].flush()
        serialization.save(
            {"done": done, "code": sources_hash(), **{n: part.state() for n, part in self._parts.items()}},
            self._path,
            self._source,
        )
        self._last = time.monotonic()
        self._took = self._last - started
