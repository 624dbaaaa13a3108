"""Handwritten digits, rotated and mirrored, as 80 classes: an open world that needs no download.

The 1,797 images of 8 x 8 pixels that scikit-learn carries (Alpaydin & Kaynak, "Optical Recognition of Handwritten
Digits", UCI 1998) under the eight symmetries of a square. A class is a digit in one position: a 6 that lies on its side
is another class than one that stands. None has a time.

Two things keep it from being clean. Some classes look the same, such as a 0 and its mirror image, so that no model can
be right everywhere. And every drawing is there eight times, in eight classes: a model that was trained on it in one
position may meet it in another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from driftline.data import Dataset
from driftline.data.formats.sklearn_digits import load_digits
from driftline.registry import register
from driftline.tasks import Classification
from driftline.types import Samples

WHITE = 255
ID_STRIDE = 1800  # between the ids of one drawing in two positions


SYMMETRIES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "upright": lambda x: x,
    "rot90": lambda x: np.rot90(x, 1, axes=(1, 2)),
    "rot180": lambda x: np.rot90(x, 2, axes=(1, 2)),
    "rot270": lambda x: np.rot90(x, 3, axes=(1, 2)),
    "mirror": lambda x: x[:, :, ::-1],
    "flip": lambda x: x[:, ::-1],
    "transpose": lambda x: x.swapaxes(1, 2),
    "antitranspose": lambda x: x[:, ::-1, ::-1].swapaxes(1, 2),
}
"""The eight symmetries of a square, for images of shape (n, side, side, channels); turns are anti-clockwise."""


@register("dataset", "digit-symmetries")
def digit_symmetries(folders: Sequence[Path] = ()) -> Dataset:
    """Digits in eight positions; an id is the image's place in scikit-learn's file, plus 1800 for every position.

    >>> data = digit_symmetries()
    >>> data.samples.x.shape, data.task.classes[13], int(np.bincount(data.samples.y).min())
    ((14376, 8, 8, 1), '3 rot90', 174)
    """
    images, labels = load_digits()
    x = np.rint(images.reshape(-1, 8, 8, 1) * (WHITE / 16)).astype(np.uint8)
    n, digits = len(labels), 10
    samples = Samples(
        x=np.concatenate([turn(x) for turn in SYMMETRIES.values()]),
        y=np.concatenate([labels + digits * k for k in range(len(SYMMETRIES))]).astype(np.int64),
        id=np.concatenate([np.arange(n) + k * ID_STRIDE for k in range(len(SYMMETRIES))]),
        time=np.zeros(n * len(SYMMETRIES), np.int64),
    )
    classes = tuple(f"{digit} {turn}" for turn in SYMMETRIES for digit in range(digits))
    note = (
        f"scikit-learn's {n:,} digits in {len(SYMMETRIES)} positions, each a class of its own: {', '.join(SYMMETRIES)}"
    )
    return Dataset("digit-symmetries", samples, Classification(classes), (note,))
