"""The accuracy of a fixed model under each pair of corruptions at each pair of severities.

A row is one corruption at one level, alone and followed by every other one at every level. The first corruption is
applied once per row. Finished rows are kept, so that an interrupted calibration resumes. The rows of one corruption are
a part; parts are independent. Each image has the same random numbers in all entries: its noise changes in strength, not
in pattern. So the entries with a single corruption are the same for all pairs, and are measured once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from driftline.benchmarks.base import Predict
from driftline.corruptions import cropping, frost_source
from driftline.errors import UserError
from driftline.io import serialization
from driftline.seeds import Seed
from driftline.streams.test_time import schedule as orders
from driftline.streams.test_time.calibration import (
    N_LEVELS,
    AccuracyMatrices,
    Pair,
    matrices_state,
    severity_of_level,
)
from driftline.streams.test_time.stream import Corrupt, builtin_corruptions, image_keys, source_images
from driftline.training import loops
from driftline.types import JsonObject, OnProgress, Samples, State, ignore_progress

if TYPE_CHECKING:
    from driftline.benchmarks.test_time.benchmark import Options
    from driftline.data import Dataset

BATCH = 500
"""Images that are corrupted at a time."""


@dataclass(frozen=True, eq=False)
class AccuracyGrid:
    """Images under pairs of corruptions."""

    samples: Samples
    names: tuple[str, ...]
    levels: int
    seed: Seed
    corrupt: Corrupt
    frost: str | None = None

    def __post_init__(self) -> None:
        if len(set(self.names)) < max(len(self.names), 2):
            names = ", ".join(self.names)
            raise UserError(f"calibration is for pairs: name at least two corruptions, each once; got {names}")
        if self.levels < 2:
            raise UserError(f"levels={self.levels}: give at least 2, no corruption and the hardest; CCC has {N_LEVELS}")

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of the parts: the first corruptions."""
        return self.names

    @property
    def settings(self) -> JsonObject:
        """What was measured, for the card."""
        corruptions = {"corruptions": list(self.names), "frost": frost_source(self.frost)}
        return {"images": len(self.samples), "levels": self.levels, **corruptions}

    @property
    def evaluations(self) -> int:
        """The number of images that are corrupted and classified."""
        k, steps = len(self.names), self.levels - 1
        return len(self.samples) * k * (1 + steps + (k - 1) * steps**2)

    @property
    def note(self) -> str:
        """What the calibration costs."""
        k = len(self.names)
        return (
            f"no calibration file: the network is first calibrated, once for all methods and seeds, on {k * (k - 1)} "
            f"pairs of corruptions at {self.levels} severities with {len(self.samples):,} images. That is "
            f"{self.evaluations:,} images to corrupt and classify; `driftline plan` says how long it takes. "
            "Fewer --calibration-levels (half of them take a quarter of the time) or --calibration-images are faster; "
            "--calibration FILE uses one that you have"
        )

    @cached_property
    def images(self) -> np.ndarray:
        """The images in bytes; of those larger than 224 pixels the center."""
        return cropping.center_crops(np.asarray(self.samples.x))

    def measure(
        self, part: str, predict: Predict, folder: Path | None, on_progress: OnProgress = ignore_progress
    ) -> State:
        """Return the number of correct images, by level of the first corruption, second corruption and its level.

        Level 0 of the second is the first one alone. `folder`: where finished rows are kept and found again.
        """
        batches = [slice(start, start + BATCH) for start in range(0, len(self.samples), BATCH)]
        counts = np.zeros((self.levels, len(self.names), self.levels), np.int64)
        counts[0, :, 0] = sum(self._count(predict, self.images[batch], batch) for batch in loops.sample(batches))
        for level in loops.sample(range(1, self.levels)):
            path = None if folder is None else folder / f"{part}-{level:02d}.safetensors"
            counts[level] = _kept(path, partial(self._row, part, level, predict, batches))
            on_progress(level, self.levels - 1)
        return {"counts": counts}

    def _row(self, first: str, level: int, predict: Predict, batches: list[slice]) -> np.ndarray:
        """Return the number of correct images by second corruption and level."""
        counts = np.zeros((len(self.names), self.levels), np.int64)
        others = [(k, j) for k, name in enumerate(self.names) if name != first for j in range(1, self.levels)]
        for batch in loops.sample(batches):
            images = self._corrupted(self.images[batch], first, level, batch)
            counts[:, 0] += self._count(predict, images, batch)
            for k, j in loops.sample(others):
                counts[k, j] += self._count(predict, self._corrupted(images, self.names[k], j, batch), batch)
        return counts

    def _corrupted(self, images: np.ndarray, name: str, level: int, batch: slice) -> np.ndarray:
        return self.corrupt(images, name, severity_of_level(level, self.levels), self._keys[batch])

    @cached_property
    def _keys(self) -> np.ndarray:
        return image_keys(self.seed.child("noise"), np.arange(len(self.samples)))

    def _count(self, predict: Predict, images: np.ndarray, batch: slice) -> int:
        return int((predict(images) == self.samples.y[batch]).sum())

    def matrices(self, measured: Sequence[State]) -> AccuracyMatrices:
        """Return accuracies in percent from the results of all parts."""
        counts = np.stack([part["counts"] for part in measured])
        by_pair: dict[Pair, np.ndarray] = {}
        for a, first in enumerate(self.names):
            for b, second in enumerate(self.names):
                if first != second:
                    matrix = counts[a, :, b].copy()
                    matrix[0, 1:] = counts[b, 1:, b, 0]
                    by_pair[first, second] = 100 * matrix / len(self.samples)
        return AccuracyMatrices(by_pair)

    def combine(self, measured: Sequence[State], about: JsonObject) -> State:
        """Return the content of a calibration file."""
        return matrices_state(AccuracyMatrices(self.matrices(measured).by_pair, about))


def calibrate(
    predict: Predict,
    images: np.ndarray,
    labels: np.ndarray,
    names: Sequence[str],
    *,
    levels: int = N_LEVELS,
    seed: Seed = Seed(0),
    corrupt: Corrupt | None = None,
    folder: Path | None = None,
) -> AccuracyMatrices:
    """Return matrices for every ordered pair of `names`.

    `predict`: images in bytes to class indices. `folder`: where finished rows are kept, which are not measured again.
    """
    grid = AccuracyGrid(Samples(images, labels), tuple(names), levels, seed, corrupt or builtin_corruptions())
    return grid.matrices([grid.measure(part, predict, folder) for part in grid.parts])


def _kept(path: Path | None, make: Callable[[], np.ndarray]) -> np.ndarray:
    """Return the counts of a row, from the disk if they are there."""
    if path is None:
        return make()
    if not serialization.is_complete(path):
        serialization.save({"counts": make()}, path)
    counts: np.ndarray = serialization.load(path)["counts"]
    return counts


def accuracy_grid(dataset: Dataset, options: Options, seed: Seed) -> AccuracyGrid:
    """Return the calibration that a stream of these options needs, on images drawn from those that it shows."""
    source, drawn = source_images(dataset), seed.child("images").numpy()
    rows = drawn.permutation(len(source))[: options.calibration_images]
    names = orders.corruption_names(options.corruptions or options.difficulty)
    corrupt = builtin_corruptions(options.frost)
    return AccuracyGrid(source[rows], names, options.calibration_levels, seed, corrupt, options.frost)
