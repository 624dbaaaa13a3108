"""Images of your own as arrays: an npz file with `x` and `y`.

`x` has the shape (n, height, width) or (n, height, width, channels) and holds bytes, whole numbers up to 255, or
fractions from 0 to 1, which are rounded to bytes; `y` holds class indices from 0. An official test
set is given by a mask `test` over the rows, or apart as `x_test` and `y_test`. `classes` names the classes. `group`
(and `group_test`) divides each class into sub-classes, which enter the world in the order of their numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from driftline.data import Dataset, file_errors, locate_user_path, numbered_names
from driftline.io import bounded_files
from driftline.registry import register
from driftline.tasks import Classification
from driftline.types import Samples

EXPECTED = "an npz with images x and classes y"


@register("dataset", "npz")
def npz(
    folders: Sequence[Path],
    *,
    path: str,  # npz file with the images and labels
) -> Dataset:
    """The images of the npz file `path`; all have the time 0, and an id is the place in the file."""
    file = locate_user_path(folders, path, "npz")
    with file_errors(file, EXPECTED):
        parts = bounded_files.read_npz(file)
        x, y, group, test = (_column(parts, name) for name in ("x", "y", "group", "test"))
        if x is None or y is None:
            raise KeyError("x" if x is None else "y")
        if "x_test" in parts:
            test = np.arange(len(x)) >= len(parts["x"])
        images, labels = _images(x), _labels(y)
        classes = parts["classes"].astype(str).tolist() if "classes" in parts else numbered_names(labels)
        samples = Samples(images, labels, time=np.zeros(len(images), np.int64), group=group)
        subclasses = None if group is None else _subclasses(labels, group, len(classes))
    note = f"{len(samples):,} images of {file.name}"
    task = Classification(tuple(classes))
    mask = None if test is None else test.astype(bool)
    return Dataset("npz", samples, task, (note,), model="conv-2", test=mask, subclasses=subclasses)


def _column(parts: Mapping[str, np.ndarray], name: str) -> np.ndarray | None:
    """Return an array of the file, followed by its test part if that is separate."""
    if name not in parts or "x_test" not in parts:
        return parts.get(name)
    if name == "test":
        raise ValueError("a mask test beside x_test; give one of them")
    return np.concatenate([parts[name], parts[f"{name}_test"]])


def _images(x: np.ndarray) -> np.ndarray:
    x = x[..., np.newaxis] if x.ndim == 3 else x
    if x.ndim != 4 or x.dtype.kind not in "uif" or not len(x):
        raise ValueError(f"x of shape {x.shape} and type {x.dtype}, not numbers (n, height, width[, channels])")
    if x.dtype == np.uint8:
        return x
    low, high = float(x.min()), float(x.max())
    if not (low >= 0 and high <= (1 if x.dtype.kind == "f" else 255)):
        raise ValueError(f"x from {low:g} to {high:g}, not bytes, whole numbers from 0 to 255 or fractions from 0 to 1")
    return np.rint(x * 255.0 if x.dtype.kind == "f" else x).astype(np.uint8)


def _labels(y: np.ndarray) -> np.ndarray:
    if y.ndim != 1 or y.dtype.kind not in "iu":
        raise ValueError(f"y of shape {y.shape} and type {y.dtype}, not one class index per image")
    return y.astype(np.int64)


def _subclasses(y: np.ndarray, group: np.ndarray, classes: int) -> tuple[tuple[int, ...], ...]:
    if group.shape != y.shape or group.dtype.kind not in "iu":
        raise ValueError(f"group of shape {group.shape} and type {group.dtype}, not one whole number per image")
    groups: list[list[int]] = [[] for _ in range(classes)]
    for k, number in np.unique(np.stack([y, group.astype(np.int64)], axis=1), axis=0).tolist():
        if 0 <= k < classes:
            groups[k].append(number)
    return tuple(map(tuple, groups))
