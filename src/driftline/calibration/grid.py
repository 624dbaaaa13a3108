"""The accuracy of a fixed model under each pair of corruptions at each pair of severities.

A row is one corruption at one level, followed by every other one at every level. The first corruption is applied once
per row. Finished rows are kept, so that an interrupted calibration resumes. Rows are independent, so results are
identical for any number of threads. Each image has the same random numbers in all entries: its noise changes in
strength, not in pattern. So the entries with a single corruption are the same for all pairs, and are measured once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from driftline import parallel
from driftline.engine.executors.process import one_thread
from driftline.engine.stages.base import OnProgress, ignore_progress
from driftline.errors import UserError
from driftline.io import serialization
from driftline.seeds import Seed
from driftline.streams.test_time.calibration import N_LEVELS, AccuracyMatrices, Pair, severity_of_level
from driftline.streams.test_time.stream import Corrupt, builtin_corruptions, image_keys

Predict = Callable[[np.ndarray], np.ndarray]
"""Images in bytes to class indices."""
CLEAN = "clean"
Row = tuple[str, int]  # the first corruption and its level; ("clean", 0) for none


@dataclass(frozen=True, eq=False)
class AccuracyGrid:
    """A model on some images under pairs of corruptions."""

    predict: Predict
    images: np.ndarray
    labels: np.ndarray
    names: tuple[str, ...]
    levels: int
    keys: np.ndarray
    corrupt: Corrupt
    stop: threading.Event = field(default_factory=threading.Event)

    @property
    def rows(self) -> list[Row]:
        """The independent parts of the work."""
        return [(CLEAN, 0), *((name, level) for name in self.names for level in range(1, self.levels))]

    def correct_counts(self, row: Row) -> np.ndarray:
        """Return the number of correct images by second corruption and level; level 0 in the clean row only."""
        first, level = row
        images = self._corrupted(self.images, first, level)
        counts = np.zeros((len(self.names), self.levels), np.int64)
        if first == CLEAN:
            counts[:, 0] = self._count(images)
        for k, second in enumerate(self.names):
            for j in range(1, self.levels) if second != first else ():
                counts[k, j] = self._count(self._corrupted(images, second, j))
        return counts

    def _corrupted(self, images: np.ndarray, name: str, level: int) -> np.ndarray:
        return self.corrupt(images, name, severity_of_level(level, self.levels), self.keys) if level else images

    def _count(self, images: np.ndarray) -> int:
        if self.stop.is_set():
            raise CancelledError
        return int((self.predict(images) == self.labels).sum())

    def matrices(self, row_counts: dict[Row, np.ndarray]) -> dict[Pair, np.ndarray]:
        """Return accuracies in percent from the counts of all rows."""
        by_pair: dict[Pair, np.ndarray] = {}
        single = row_counts[CLEAN, 0]
        for a, first in enumerate(self.names):
            for b, second in enumerate(self.names):
                if first != second:
                    counts = np.stack([single[b], *(row_counts[first, i][b] for i in range(1, self.levels))])
                    counts[1:, 0] = single[a, 1:]
                    by_pair[first, second] = 100 * counts / len(self.labels)
        return by_pair


def calibrate(
    predict: Predict,
    images: np.ndarray,
    labels: np.ndarray,
    names: Sequence[str],
    *,
    levels: int = N_LEVELS,
    seed: Seed = Seed(0),
    corrupt: Corrupt | None = None,
    parts: Path | None = None,
    jobs: int = 1,
    on_progress: OnProgress = ignore_progress,
) -> AccuracyMatrices:
    """Return matrices for every ordered pair of `names`.

    `parts`: a folder of finished rows, which are not measured again. `jobs`: number of threads. `on_progress` is called
    with the number of rows done and of all rows.
    """
    if len(set(names)) < max(len(names), 2):
        raise UserError(f"calibration is for pairs: name at least two corruptions, each once; got {', '.join(names)}")
    if levels < 2:
        raise UserError(f"levels={levels}: give at least 2, no corruption and the hardest; CCC has {N_LEVELS}")
    keys = image_keys(seed.child("noise"), np.arange(len(labels)))
    grid = AccuracyGrid(predict, images, labels, tuple(names), levels, keys, corrupt or builtin_corruptions())
    with one_thread():
        counts = parallel.map(
            lambda row: _cached_row(grid, row, parts),
            grid.rows,
            jobs,
            on_done=lambda row, done: on_progress(done, len(grid.rows)),
            stop=grid.stop,
        )
    return AccuracyMatrices(grid.matrices(dict(zip(grid.rows, counts, strict=True))))


def _cached_row(grid: AccuracyGrid, row: Row, parts: Path | None) -> np.ndarray:
    """Return the counts of a row, from the disk if they are there."""
    if parts is None:
        return grid.correct_counts(row)
    path = parts / f"{row[0]}-{row[1]:02d}.safetensors"
    if not serialization.is_complete(path):
        serialization.save({"right": grid.correct_counts(row)}, path)
    counts: np.ndarray = serialization.load(path)["right"]
    return counts
