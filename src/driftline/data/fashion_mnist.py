"""Fashion-MNIST: 70,000 gray images of clothes, 28 x 28 pixels in 10 classes, without a time.

Xiao, Rasul and Vollgraf, "Fashion-MNIST", 2017. Read are the four idx files, packed by gzip or not, in a folder
`fashion-mnist` or `FashionMNIST/raw`. The training images come first, then the test images; an id is the place.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from driftline.data import Dataset, file_errors, locate
from driftline.data.source import published
from driftline.io import bounded_files
from driftline.registry import register
from driftline.tasks import Classification
from driftline.types import Samples

CLASSES = ("T-shirt/top", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot")
ADVICE = "Get the four files train-*.gz and t10k-*.gz from https://github.com/zalandoresearch/fashion-mnist"
UNSIGNED_BYTE = 8  # the idx code of unsigned bytes


@register("dataset", "fashion-mnist")
@published(
    size="70,000 gray images of 28 x 28 pixels, 10 classes",
    license="MIT",
    where=ADVICE,
    files=("fashion-mnist", "FashionMNIST/raw"),
)
def fashion_mnist(folders: Sequence[Path]) -> Dataset:
    """Fashion-MNIST with its official test set."""
    folder = locate(folders, ["fashion-mnist", "FashionMNIST/raw"], "fashion-mnist", ADVICE)
    (x, y), (x_test, y_test) = (_part(folder, name) for name in ("train", "t10k"))
    n = len(y) + len(y_test)
    samples = Samples(np.concatenate([x, x_test]), np.concatenate([y, y_test]), time=np.zeros(n, np.int64))
    note = f"{len(y):,} training and {len(y_test):,} test images in the official order"
    return Dataset(
        "fashion-mnist", samples, Classification(CLASSES), (note,), model="conv-2", test=np.arange(n) >= len(y)
    )


def _part(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    images, labels = (_file(folder, f"{name}-{kind}-ubyte") for kind in ("images-idx3", "labels-idx1"))
    x, y = read_idx(images, 3), read_idx(labels, 1)
    with file_errors(labels, "a class from 0 to 9 for each image"):
        if len(x) != len(y):
            raise ValueError(f"{len(x)} images but {len(y)} labels")
        if not len(y) or y.max() >= len(CLASSES):
            raise ValueError(f"the label {y.max()}" if len(y) else "nothing")
    return x[..., np.newaxis], y.astype(np.int64)


def _file(folder: Path, name: str) -> Path:
    return locate([folder], [f"{name}.gz", name], "fashion-mnist", ADVICE)


def read_idx(path: Path, dimensions: int) -> np.ndarray:
    """Read the bytes of an idx file (the format of MNIST) with this number of dimensions."""
    with file_errors(path, f"an idx file of bytes in {dimensions} dimension(s)"):
        with bounded_files.open_file(path) as file:
            raw = file.read()
        zero, kind, found = struct.unpack_from(">HBB", raw)
        if (zero, kind, found) != (0, UNSIGNED_BYTE, dimensions):
            raise ValueError(f"numbers of kind {kind} in {found} dimension(s)")
        shape = struct.unpack_from(f">{dimensions}I", raw, 4)
        return np.frombuffer(raw, np.uint8, offset=4 + 4 * dimensions).reshape(shape).copy()
