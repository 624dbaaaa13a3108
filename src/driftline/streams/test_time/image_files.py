"""Corrupted images from published files: ImageNet-C, CIFAR-10-C and ImageNet-3DCC; read when a step needs them.

ImageNet-C and CIFAR-10-C are by Hendrycks and Dietterich 2019. CIFAR-10-C and CIFAR-100-C have an array per corruption,
such as `fog.npy`, with all test images once for each severity, and `labels.npy` with the classes. The others have a
folder per corruption, in it one per severity, in it one per class, such as
`near_focus/5/n01440764/ILSVRC2012_val_00000293.JPEG`. The corruptions of ImageNet-3DCC (Kar, Yeo, Atanov and Zamir, "3D
Common Corruptions and Data Augmentation", CVPR 2022) follow the geometry of a scene, which needs its depth. They are
not computed here; their files are read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from pathlib import Path

import numpy as np

from driftline.corruptions import cropping
from driftline.data import file_errors
from driftline.data.formats import decoded_images
from driftline.data.imagenet_val import SUFFIXES
from driftline.errors import UserError, unknown_name
from driftline.io.user_files import check_regular, resolve
from driftline.lazy_rows import LazyRows
from driftline.seeds import Seed
from driftline.streams.test_time.schedule import CorruptionPair, Schedule
from driftline.streams.test_time.stream import CACHED_PERMUTATIONS, Places, sample_rows
from driftline.types import JsonObject, Samples, Step

FOLDER_NAMES = {"elastic": "elastic_transform", "jpeg": "jpeg_compression"}
"""Folders of ImageNet-C whose corruption has a shorter name here."""
LAYOUT = "expected a folder per corruption, in it one per severity, in it one per class"
LABELS, SEVERITIES = "labels.npy", 5
LabelledFiles = list[tuple[str, int]]
"""Names of image files, each with its class."""


@dataclass(frozen=True, eq=False)
class ImageFiles:
    """Steps of `batch` images, `n_images` in all, `images_per_point` of each corruption, one corruption after another.

    Within a corruption no file comes twice before all have come once. A sample's id is its position in the stream, its
    group the number of its point: `schedule.point(group)`.
    """

    images: tuple[Samples, ...]
    """The images of each point of the schedule, with their classes."""
    schedule: Schedule
    n_images: int
    batch: int
    images_per_point: int
    seed: Seed
    places: Places | None = None
    """The point and the image of each position; None: as the schedule has them."""
    _draws: Callable[[int], np.ndarray] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_draws", lru_cache(maxsize=CACHED_PERMUTATIONS)(self._drawn))

    def __len__(self) -> int:
        return -(-self.n_images // self.batch)

    def __getitem__(self, index: int) -> Step:
        index = range(len(self))[index]
        positions = np.arange(index * self.batch, min((index + 1) * self.batch, self.n_images))
        points, rows = self.points(positions), self.rows(positions)
        parts = [self._of(point)[rows[points == point]] for point in np.unique(points).tolist()]
        x, y = np.concatenate([part.x[:] for part in parts]), np.concatenate([part.y for part in parts])
        back = np.argsort(np.argsort(points, kind="stable"))
        return Step(
            index, str(self.schedule.point(int(points[0]))), Samples(x[back], y[back], id=positions, group=points)
        )

    def points(self, positions: np.ndarray) -> np.ndarray:
        """Return the number of the point that each position is in."""
        return np.asarray(positions // self.images_per_point if self.places is None else self.places.points[positions])

    def rows(self, positions: np.ndarray) -> np.ndarray:
        """Return which of the images of its point each position shows."""
        if self.places is not None:
            return np.asarray(self.places.rows[positions])
        rows = np.empty(len(positions), np.int64)
        points = self.points(positions)
        for point in np.unique(points).tolist():
            here = points == point
            rows[here] = self._draws(point)[positions[here] % self.images_per_point]
        return rows

    def labels(self, point: int) -> np.ndarray:
        """Return the labels of the images of a point."""
        return self._of(point).y

    def _of(self, point: int) -> Samples:
        return self.images[point % len(self.images)]

    def _drawn(self, point: int) -> np.ndarray:
        return sample_rows(len(self._of(point)), self.images_per_point, self.seed.child("images", point))

    @cached_property
    def protocol(self) -> JsonObject:
        """The description of the stream on the card."""
        return {
            "images": self.n_images,
            "batch": self.batch,
            "images_per_point": self.images_per_point,
            "source_images": [len(of) for of in self.images],
            "crop": "as published; the center of 224 pixels of larger images",
            "schedule": self.schedule.to_card(),
        }


def image_files(
    folder: Path | str,
    schedule: Schedule,
    classes: Sequence[str],
    *,
    n_images: int,
    batch: int = 64,
    images_per_point: int = 1000,
    seed: Seed = Seed(0),
) -> ImageFiles:
    """Return a stream of published images, in the order of the schedule; `classes` names the class folders."""
    base, index = resolve(folder), {name: k for k, name in enumerate(classes)}
    if not base.is_dir():
        raise UserError(f"there is no folder {base} with published images: {LAYOUT}")
    if (base / LABELS).is_file():
        images = [_mapped(base, point, len(classes)) for point in schedule.points]
    else:
        listed = [_list_files(base, point, index) for point in schedule.points]
        shape = _read(base / listed[0][0][0]).shape
        images = [_unread(base, files, shape) for files in listed]
    return ImageFiles(tuple(images), schedule, n_images, batch, images_per_point, seed)


def _unread(base: Path, listed: LabelledFiles, shape: tuple[int, ...]) -> Samples:
    names, labels = zip(*listed, strict=True)
    x = decoded_images.image_files(base, np.array(names), partial(_read, shape=shape), shape)
    return Samples(x, np.array(labels, np.int64))


def _read(file: Path, shape: tuple[int, ...] | None = None) -> np.ndarray:
    image: np.ndarray = cropping.center_crops(cropping.decode_image(file)[None])[0]
    if shape and image.shape != shape:
        raise UserError(f"{file}: expected an image of shape {shape} like the others, got {image.shape}")
    return image


def _mapped(base: Path, point: CorruptionPair, classes: int) -> Samples:
    """Return the images of one severity in the array of a corruption."""
    file = base / f"{FOLDER_NAMES.get(point.first, point.first)}.npy"
    with file_errors(file, "an array of byte images for each of five severities"):
        check_regular(file)
        x = np.load(file, mmap_mode="r", allow_pickle=False)
        if x.ndim != 4 or x.dtype != np.uint8 or len(x) % SEVERITIES:
            raise ValueError(f"an array of shape {x.shape} and type {x.dtype}")
    with file_errors(base / LABELS, f"the classes of the {len(x)} images of {file.name}"):
        check_regular(base / LABELS)
        y = np.load(base / LABELS, allow_pickle=False).astype(np.int64)
        if y.shape != (len(x),) or y.min() < 0 or y.max() >= classes:
            raise ValueError(f"an array of shape {y.shape} with values from {y.min()} to {y.max()}")
    n = len(x) // SEVERITIES
    return Samples(LazyRows.all_of(x), y)[slice((_severity(point) - 1) * n, _severity(point) * n)]


def _severity(point: CorruptionPair) -> int:
    if point.s1 not in range(1, SEVERITIES + 1):
        raise UserError(f"severity={point.s1:g}: published images have a whole number from 1 to 5")
    return int(point.s1)


def _list_files(base: Path, point: CorruptionPair, classes: dict[str, int]) -> LabelledFiles:
    corruption = f"{FOLDER_NAMES.get(point.first, point.first)}/{_severity(point)}"
    inside = base / corruption
    if not inside.is_dir():
        raise UserError(f"there is no folder {inside}: {LAYOUT}")
    found: list[tuple[str, int]] = []
    for name in sorted(entry.name for entry in os.scandir(inside) if entry.is_dir()):
        if name not in classes:
            raise unknown_name(f"class folder in {inside}", name, classes)
        images = sorted(file for file in os.listdir(inside / name) if file.lower().endswith(SUFFIXES))
        found += [(f"{corruption}/{name}/{file}", classes[name]) for file in images]
    if not found:
        raise UserError(f"no image in {inside}: {LAYOUT}")
    return found
