"""RDumb's Table 6 and Figures 2 and 9: a calibration of a ResNet-20, and the paths of constant accuracy in it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from pathlib import Path

import numpy as np

from driftline.data import data_folders
from driftline.io.locate import locate
from driftline.streams import corruption_path, read_matrices
from driftline.streams.test_time.calibration import N_LEVELS, AccuracyMatrices, severity_of_level
from driftline.streams.test_time.schedule import SUBSETS
from driftline.types import JsonObject

NOTE = (
    "ResNet-20 on CIFAR-10, six corruptions, 100 images and 6 levels per pair, interpolated to 21 levels; targets of "
    "53, 31 and 10 %, the same shares of the way from chance to clean accuracy as in the paper"
)
FILE = "resnet20-six.safetensors"
ADVICE = (
    "Make it with `driftline calibrate --data cifar10 --model resnet20 --set model.weights=resnet20-12fca82f.th "
    "--upstream-updates 0 --images 100 --levels 6 --corruptions gaussian_noise,shot_noise,impulse_noise,contrast,"
    f"zoom_blur,snow -o {FILE}`."
)
TARGETS = {"easy": 53.0, "medium": 31.0, "hard": 10.0}
PAIR = ("zoom_blur", "snow")
PLACES = {"start": 0.0, "middle": 0.5, "end": 1.0}


def scores(data_dir: Path | None) -> list[JsonObject]:
    """Return lengths of paths by difficulty, and accuracies and severities of one pair of corruptions."""
    path = locate(data_folders(data_dir), [FILE], "the calibration", ADVICE)
    grids = read_matrices(path).at(N_LEVELS)
    return [*_lengths(grids), *_accuracies(grids), *_places(grids)]


def _lengths(grids: AccuracyMatrices) -> Iterator[JsonObject]:
    for difficulty, target in TARGETS.items():
        names = [name for name in SUBSETS[difficulty] if name in grids.names]
        lengths = [len(corruption_path(grids[pair], target)) for pair in permutations(names, 2)]
        for stat in ("min", "max", "mean", "median"):
            value = float(getattr(np, stat)(lengths))
            yield _row(f"ccc {difficulty}", "path-length", stat, value, n=len(lengths), unit="paths")


def _accuracies(grids: AccuracyMatrices) -> Iterator[JsonObject]:
    """Return the accuracy in steps of half of the highest severity."""
    half = (N_LEVELS - 1) // 2
    for i in (0, half, 2 * half):
        for j in (0, half, 2 * half):
            stat = f"then at {severity_of_level(j):g}"
            method = f"{PAIR[0]} at {severity_of_level(i):g}, {PAIR[1]}"
            yield _row(method, "stream-accuracy", stat, float(grids[PAIR][i, j]) / 100)


def _places(grids: AccuracyMatrices) -> Iterator[JsonObject]:
    """Return severities and accuracy along the path of each difficulty."""
    for difficulty, target in TARGETS.items():
        path = corruption_path(grids[PAIR], target)
        for place, share in PLACES.items():
            i, j = path[round(share * (len(path) - 1))]
            method = f"{PAIR[0]} to {PAIR[1]}, {difficulty}"
            for name, level in zip(PAIR, (i, j), strict=True):
                yield _row(method, f"severity of {name}", place, severity_of_level(level))
            yield _row(method, "stream-accuracy", place, float(grids[PAIR][i, j]) / 100)


def _row(method: str, metric: str, stat: str, value: float, n: int = 0, unit: str = "") -> JsonObject:
    return {"method": method, "seed": 0, "metric": metric, "stat": stat, "value": value, "n": n, "unit": unit}
