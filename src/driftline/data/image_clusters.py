"""Rotated, mirrored and inverted images: upright ones upstream, and five clusters of the others.

Every cluster applies one fixed transformation, so all sets share their classes and a model of the upright images fails
elsewhere because of the transformation alone. `digit-clusters` needs no download: scikit-learn's 1,797 digits
(Alpaydin & Kaynak, "Optical Recognition of Handwritten Digits", UCI 1998). `image-clusters` does the same to any other
dataset of square images.

Training images are never used for evaluation. The others are in every set, upright and transformed, under an id per
set. `Dataset.base` says which image it is, so that none is both in a stream and held out; within a stream, a model that
learns from an image in one cluster may meet it transformed in the next.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from driftline.data import Dataset, load
from driftline.data.formats.sklearn_digits import load_digits
from driftline.errors import UserError
from driftline.registry import register
from driftline.seeds import Seed
from driftline.tasks import Classification, Task
from driftline.types import Samples

WHITE = 255
TRANSFORMATIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "upright": lambda x: x,
    "rot90": lambda x: np.rot90(x, axes=(1, 2)),
    "rot180": lambda x: np.rot90(x, 2, axes=(1, 2)),
    "mirror": lambda x: x[:, :, ::-1],
    "invert": lambda x: WHITE - x,
    "transpose+invert": lambda x: WHITE - x.swapaxes(1, 2),
}
"""What each set does to images (n x side x side x channels) with values from 0 to white; the first is upstream."""


@register("dataset", "digit-clusters")
def digit_clusters(
    folders: Sequence[Path] = (),
    *,
    train: int = 700,  # number of images to train on
    copies: int = 4,  # noisy copies of each training image
    noise: float = 0.1,  # standard deviation of Gaussian noise, white being 1
    seed: int = 0,  # seed of the random choices; the same data for every run
) -> Dataset:
    """Digits: `train` images in `copies` noisy copies each to train on, the others in all six sets.

    `noise` is the standard deviation of Gaussian noise, white being 1; every copy and set has its own.

    >>> data = digit_clusters()
    >>> len(data.samples), np.bincount(data.samples.group).tolist()
    (9382, [3897, 1097, 1097, 1097, 1097, 1097])
    """
    images, labels = load_digits()
    _check_options("digit-clusters", train, len(labels), copies, noise)
    x = images.reshape(-1, 8, 8, 1) * (WHITE / 16)
    order = Seed(seed).child("digit-clusters", "split").numpy().permutation(len(labels))
    parts = np.sort(order[:train]), np.sort(order[train:])
    task = Classification(tuple("0123456789"))
    return _make_sets("digit-clusters", x, labels, task, parts, copies, noise, seed, "mlp")


@register("dataset", "image-clusters")
def image_clusters(
    folders: Sequence[Path],
    *,
    base: str = "fashion-mnist",  # name of a dataset of square images
    train: int = 10_000,  # number of images to train on
    others: int = 3_000,  # number of other images, each in all six sets
    copies: int = 1,  # noisy copies of each training image
    noise: float = 0.0,  # standard deviation of Gaussian noise, white being 1
    seed: int = 0,  # seed of the random choices; the same data for every run
) -> Dataset:
    """The images of the dataset `base`: `train` of them to train on, `others` in all six sets.

    If `base` has an official test set, the others are drawn from it and those to train on from the rest.
    """
    data = load(base, folders=folders)
    x, name = data.samples.x, f"image-clusters of {base}"
    if getattr(x, "dtype", None) != np.uint8 or x.ndim != 4 or x.shape[1] != x.shape[2]:
        raise UserError(f"{name}: the sets are made of square images, and '{base}' has none")
    order = Seed(seed).child("image-clusters", "split").numpy().permutation(len(x))
    held_out = np.arange(len(x)) >= train if data.test is None else data.test[order]
    parts = np.sort(order[~held_out][:train]), np.sort(order[held_out][:others])
    if len(parts[0]) < train or len(parts[1]) < others:
        have = f"{(~held_out).sum():,} to train on and {held_out.sum():,} others"
        raise UserError(f"{name}: there are {have}, too few for train={train:,} and others={others:,}")
    _check_options(name, train, len(x), copies, noise)
    return _make_sets("image-clusters", x, data.samples.y, data.task, parts, copies, noise, seed, data.model)


def _make_sets(
    name: str,
    x: np.ndarray,
    y: np.ndarray,
    task: Task,
    parts: tuple[np.ndarray, np.ndarray],
    copies: int,
    noise: float,
    seed: int,
    model: str,
) -> Dataset:
    """Return the first part upright in several copies, and the second part in every set."""
    train, others = parts
    sets = [(copy, 0, train) for copy in range(copies)] + [(k, k, others) for k in range(len(TRANSFORMATIONS))]
    made = []
    for number, (block, k, rows) in enumerate(sets):
        changed = list(TRANSFORMATIONS.values())[k](x[rows].astype(float))
        changed = changed + noise * WHITE * Seed(seed).child(name, "noise", number).numpy().standard_normal(
            changed.shape
        )
        made.append(
            Samples(
                x=np.rint(changed.clip(0, WHITE)).astype(np.uint8),
                y=y[rows].astype(np.int64),
                id=block * len(x) + rows,
                time=np.zeros(len(rows), np.int64),
                group=np.full(len(rows), k),
            )
        )
    samples = Samples.concat(made)
    note = f"{len(train):,} upright images in {copies} copies to train on; {len(others):,} others in each of six sets"
    return Dataset(
        name,
        samples,
        task,
        (f"{note}, with noise {noise:g}; the clusters are made: {', '.join([*TRANSFORMATIONS][1:])}",),
        model,
        test=np.arange(len(samples)) >= copies * len(train),
        clusters=tuple(TRANSFORMATIONS),
        base=samples.id % len(x),
    )


def _check_options(name: str, train: int, n: int, copies: int, noise: float) -> None:
    if not 1 <= train < n:
        raise UserError(f"{name}: train={train}, but it must be from 1 to {n - 1}, to leave some of {n:,} images")
    if copies < 1:
        raise UserError(f"{name}: copies={copies}, but there must be at least 1")
    if not 0 <= noise < np.inf:
        raise UserError(f"{name}: noise={noise}, but it must be 0 or a positive number; white is 1")
