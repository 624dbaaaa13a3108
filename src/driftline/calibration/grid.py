"""The accuracy of a fixed model under each pair of corruptions at each pair of severities.

The work falls into rows: one corruption at one level, followed by every other one at every level. The images of a row
are corrupted by the first corruption once. A finished row is kept, so that a calibration that was stopped goes on where
it was; rows are independent, so that any number of workers gives the same matrices. Each image keeps its random
numbers throughout: its noise differs from level to level in strength, not in pattern. What is measured without a
first corruption therefore holds for every pair, and is measured once.
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
        right = np.zeros((len(self.names), self.levels), np.int64)
        if first == CLEAN:
            right[:, 0] = self._count(images)
        for k, second in enumerate(self.names):
            for j in range(1, self.levels) if second != first else ():
                right[k, j] = self._count(self._corrupted(images, second, j))
        return right

    def _corrupted(self, images: np.ndarray, name: str, level: int) -> np.ndarray:
        return self.corrupt(images, name, severity_of_level(level, self.levels), self.keys) if level else images

    def _count(self, images: np.ndarray) -> int:
        if self.stop.is_set():
            raise CancelledError
        return int((self.predict(images) == self.labels).sum())

    def matrices(self, right: dict[Row, np.ndarray]) -> dict[Pair, np.ndarray]:
        """Return accuracies in percent from the counts of all rows."""
        of: dict[Pair, np.ndarray] = {}
        alone = right[CLEAN, 0]
        for a, first in enumerate(self.names):
            for b, second in enumerate(self.names):
                if first != second:
                    rows = [right[first, i][b] for i in range(1, self.levels)]
                    counts = np.stack([alone[b], *rows])
                    counts[1:, 0] = alone[a, 1:]
                    of[first, second] = 100 * counts / len(self.labels)
        return of


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
    """Return matrices for every ordered pair of `names`; `predict` returns class indices for images in bytes.

    `parts` is a folder in which finished rows are kept; what is found there is not measured again. `jobs` threads work
    side by side. `on_progress` is called with the number of rows done and of all rows.
    """
    if len(set(names)) < max(len(names), 2):
        raise UserError(f"calibration is for pairs: name at least two corruptions, each once; got {', '.join(names)}")
    if levels < 2:
        raise UserError(f"levels={levels}: give at least 2, no corruption and the hardest; CCC has {N_LEVELS}")
    drawn = image_keys(seed.child("noise"), np.arange(len(labels)))
    grid = AccuracyGrid(predict, images, labels, tuple(names), levels, drawn, corrupt or builtin_corruptions())
    with one_thread():
        right = parallel.map(
            lambda row: _cached_row(grid, row, parts),
            grid.rows,
            jobs,
            on_done=lambda row, done: on_progress(done, len(grid.rows)),
            stop=grid.stop,
        )
    return AccuracyMatrices(grid.matrices(dict(zip(grid.rows, right, strict=True))))


def _cached_row(grid: AccuracyGrid, row: Row, parts: Path | None) -> np.ndarray:
    """Return the counts of a row, from the disk if they are there."""
    if parts is None:
        return grid.correct_counts(row)
    path = parts / f"{row[0]}-{row[1]:02d}.safetensors"
    if not serialization.is_complete(path):
        serialization.save({"right": grid.correct_counts(row)}, path)
    counts: np.ndarray = serialization.load(path)["right"]
    return counts
