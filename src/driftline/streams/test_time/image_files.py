"""Corrupted images read from their published files: ImageNet-C (Hendrycks and Dietterich 2019) and ImageNet-3DCC.

The layout of both is a folder per corruption, in it one per severity, in it one per class, such as
`near_focus/5/n01440764/ILSVRC2012_val_00000293.JPEG`. The corruptions of ImageNet-3DCC (Kar, Yeo, Atanov, Zamir, "3D
Common Corruptions and Data Augmentation", CVPR 2022) follow the geometry of a scene, which needs its depth. They are
not computed here; their files are read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np

from driftline.corruptions import cropping
from driftline.data.imagenet_val import SUFFIXES
from driftline.errors import UserError, unknown_name
from driftline.io.user_files import resolve
from driftline.seeds import Seed
from driftline.streams.test_time.schedule import CorruptionPair, Schedule
from driftline.streams.test_time.stream import CACHED_PERMUTATIONS, sample_rows
from driftline.types import JsonObject, Samples, Step

FOLDER_NAMES = {"elastic": "elastic_transform", "jpeg": "jpeg_compression"}
"""Folders of ImageNet-C whose corruption has a shorter name here."""
LAYOUT = "expected a folder per corruption, in it one per severity, in it one per class"
LabelledFiles = tuple[tuple[Path, int], ...]
"""Image files, each with its class."""


@dataclass(frozen=True, eq=False)
class ImageFiles:
    """Steps of `batch` images, `n_images` in all, `speed` of each corruption, one corruption after another.

    Within a corruption no file comes twice before all have come once. A sample's id is its position in the stream, its
    group the number of its point: `schedule.point(group)`.
    """

    files: tuple[LabelledFiles, ...]
    """The images of each point of the schedule."""
    schedule: Schedule
    n_images: int
    batch: int
    speed: int
    seed: Seed
    _draws: Callable[[int], np.ndarray] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_draws", lru_cache(maxsize=CACHED_PERMUTATIONS)(self._drawn))

    def __len__(self) -> int:
        return -(-self.n_images // self.batch)

    def __getitem__(self, index: int) -> Step:
        index = range(len(self))[index]
        positions = np.arange(index * self.batch, min((index + 1) * self.batch, self.n_images))
        points = positions // self.speed
        chosen = [
            self._of(int(point))[self._draws(int(point))[position % self.speed]]
            for point, position in zip(points, positions, strict=True)
        ]
        x, y = self._pixels([file for file, _ in chosen]), np.array([label for _, label in chosen], np.int64)
        return Step(index, str(self.schedule.point(int(points[0]))), Samples(x, y, id=positions, group=points))

    def _of(self, point: int) -> LabelledFiles:
        return self.files[point % len(self.files)]

    def _drawn(self, point: int) -> np.ndarray:
        return sample_rows(len(self._of(point)), self.speed, self.seed.child("images", point))

    def _pixels(self, files: Sequence[Path]) -> np.ndarray:
        x = np.empty((len(files), *self._shape), np.uint8)
        for k, file in enumerate(files):
            image = cropping.center_crops(cropping.decode_image(file)[None])[0]
            if image.shape != self._shape:
                raise UserError(f"{file}: expected an image of shape {self._shape} like the others, got {image.shape}")
            x[k] = image
        return x

    @cached_property
    def _shape(self) -> tuple[int, ...]:
        return tuple(cropping.center_crops(cropping.decode_image(self.files[0][0][0])[None])[0].shape)

    @cached_property
    def protocol(self) -> JsonObject:
        """What a card says about the stream."""
        return {
            "images": self.n_images,
            "batch": self.batch,
            "speed": self.speed,
            "source_images": [len(of) for of in self.files],
            "crop": "as published; the centre of 224 pixels of larger images",
            "schedule": self.schedule.to_card(),
        }


def image_files(
    folder: Path | str,
    schedule: Schedule,
    classes: Sequence[str],
    *,
    n_images: int,
    batch: int = 64,
    speed: int = 1000,
    seed: Seed = Seed(0),
) -> ImageFiles:
    """Return a stream of published images, in the order of the schedule; `classes` names the class folders."""
    base, index = resolve(folder), {name: k for k, name in enumerate(classes)}
    if not base.is_dir():
        raise UserError(f"there is no folder {base} with published images: {LAYOUT}")
    files = tuple(_list_files(base, point, index) for point in schedule.points)
    return ImageFiles(files, schedule, n_images, batch, speed, seed)


def _list_files(base: Path, point: CorruptionPair, classes: dict[str, int]) -> LabelledFiles:
    if point.s1 != int(point.s1):
        raise UserError(f"severity={point.s1:g}: published images have a whole number from 1 to 5")
    inside = base / FOLDER_NAMES.get(point.first, point.first) / f"{point.s1:g}"
    if not inside.is_dir():
        raise UserError(f"there is no folder {inside}: {LAYOUT}")
    found: list[tuple[Path, int]] = []
    for name in sorted(entry.name for entry in os.scandir(inside) if entry.is_dir()):
        if name not in classes:
            raise unknown_name(f"class folder in {inside}", name, classes)
        images = sorted(file for file in os.listdir(inside / name) if file.lower().endswith(SUFFIXES))
        found += [(inside / name / file, classes[name]) for file in images]
    if not found:
        raise UserError(f"no image in {inside}: {LAYOUT}")
    return tuple(found)
