"""Checkpoints: the state of a run between two steps, from which an interrupted run resumes."""

from __future__ import annotations

import os
import time
from pathlib import Path

from driftline.io import serialization
from driftline.lazy_rows import LazyRows
from driftline.spec.keys import sources_hash
from driftline.types import Inputs, JsonObject

CHECKPOINT_SECONDS = float(os.environ.get("DRIFTLINE_CHECKPOINT_SECONDS", "5"))
WRITE_TIME_FACTOR = 20  # writing takes at most a twentieth of the time


class Checkpoint:
    """All parts of a run in one file, replaced atomically.

    Lazy inputs that a part keeps are saved by their rows in `inputs`, so that the file has no images.
    """

    def __init__(self, path: Path, parts: JsonObject, inputs: Inputs = None) -> None:
        self._path = path
        self._parts = parts
        self._source = inputs.source if isinstance(inputs, LazyRows) else None
        self._last = time.monotonic()
        self._took = 0.0

    def resume(self) -> int:
        """Restore the parts as an interrupted run left them; return the number of steps done."""
        if not self._path.exists():
            return 0
        saved = serialization.load(self._path, self._source)
        if saved["code"] != sources_hash():
            raise ValueError("the checkpoint was written by other code")
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
