"""Images under corruptions that change with time, computed on demand and always the same.

Each image of the stream has a position. The position and the stream's seed decide which source image it is, how it is
cropped and what its noise looks like, so that a step can be made anywhere, at any time and by any number of workers.
A point of the schedule lasts for `images_per_point` images; a batch may begin in one point and end in the next.

The released generator of CCC takes source images from a list that depends on the file system, and its pixels depend on
the number of processes. Schedules are the same here; source images, crops and noise are drawn from named seeds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from driftline import corruptions
from driftline.corruptions import cropping, frost_source
from driftline.corruptions.corrupt import compiled
from driftline.data import Dataset
from driftline.errors import UserError
from driftline.lazy_rows import LazyRows, originals
from driftline.seeds import Seed
from driftline.streams.test_time.schedule import Schedule
from driftline.types import JsonObject, Samples, Step, take_rows

Corrupt = Callable[[np.ndarray, str, float, np.ndarray], np.ndarray]
"""Images, the name of a corruption, a severity and a key per image to images: `corruptions.corrupt`."""
Crop = Callable[[LazyRows | np.ndarray, np.ndarray], np.ndarray]
"""Images and a key per image to images, perhaps of another size."""
CACHED_PERMUTATIONS = 8


class Places(NamedTuple):
    """The point and the source image of each position of a stream."""

    points: np.ndarray
    rows: np.ndarray


@dataclass(frozen=True, eq=False)
class CorruptionStream:
    """Steps of `batch` images each, `n_images` in all; the last step may be smaller.

    A sample's id is its position in the stream, its group the number of its point: `schedule.point(group)`.
    """

    source: Samples
    schedule: Schedule
    n_images: int
    batch: int
    images_per_point: int
    seed: Seed
    corrupt: Corrupt
    crop: Crop
    crop_name: str
    """Which part of an image the crop shows, for the card."""
    jpeg: int | None = None
    """With which quality each image is at last compressed as JPEG; not at all if not given."""
    frost: Path | str | None = None
    """Where the photographs of frost are, for the card."""
    places: Places | None = None
    """The point and the source image of each position; None: as the schedule has them."""
    _draws: Callable[[int], np.ndarray] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        # A step asks for the draw of the same point again and again; a few are kept, since workers are not in step.
        object.__setattr__(self, "_draws", lru_cache(maxsize=CACHED_PERMUTATIONS)(self._drawn))

    def __len__(self) -> int:
        return -(-self.n_images // self.batch)

    def __getitem__(self, index: int) -> Step:
        index = range(len(self))[index]
        positions = np.arange(index * self.batch, min((index + 1) * self.batch, self.n_images))
        points, rows = self.points(positions), self.rows(positions)
        samples = Samples(self._images(positions, points, rows), self.source.y[rows], id=positions, group=points)
        return Step(index, str(self.schedule.point(int(points[0]))), samples)

    def points(self, positions: np.ndarray) -> np.ndarray:
        """Return the number of the point that each position is in."""
        if self.places is not None:
            return np.asarray(self.places.points[positions])
        if not self.schedule.mixed:
            return np.asarray(positions // self.images_per_point)
        draws = image_keys(self.seed.child("mixed"), positions) % np.uint64(len(self.schedule.points))
        return draws.astype(np.int64)

    def rows(self, positions: np.ndarray) -> np.ndarray:
        """Return the source image of each position; within a point none repeats before all have occurred."""
        if self.places is not None:
            return np.asarray(self.places.rows[positions])
        rows = np.empty(len(positions), np.int64)
        spans = positions // self.images_per_point
        for span in np.unique(spans):
            here = spans == span
            rows[here] = self._draws(int(span))[positions[here] % self.images_per_point]
        return rows

    def labels(self, point: int) -> np.ndarray:
        """Return the labels of the source images, which are the same for each point."""
        return self.source.y

    def _drawn(self, span: int) -> np.ndarray:
        return sample_rows(len(self.source), self.images_per_point, self.seed.child("images", span))

    def _images(self, positions: np.ndarray, points: np.ndarray, rows: np.ndarray) -> np.ndarray:
        noise, crops = (image_keys(self.seed.child(name), positions) for name in ("noise", "crops"))
        parts: list[tuple[np.ndarray, np.ndarray]] = []
        for number in np.unique(points):
            here = np.flatnonzero(points == number)
            x = self.crop(take_rows(self.source.x, rows[here]), crops[here])
            point = self.schedule.point(int(number))
            for name, severity in ((point.first, point.s1), (point.second, point.s2)):
                x = self.corrupt(x, name, severity, noise[here]) if severity > 0 else x
            parts.append((here, x))
        images = np.concatenate([x for _, x in parts])
        images = images[np.argsort(np.concatenate([here for here, _ in parts]))] if len(parts) > 1 else images
        return images if self.jpeg is None else compiled("pixelate_jpeg").each_compressed(images, self.jpeg)

    @cached_property
    def protocol(self) -> JsonObject:
        """The description of the stream on the card."""
        return {
            "images": self.n_images,
            "batch": self.batch,
            "images_per_point": self.images_per_point,
            "source_images": len(self.source),
            "crop": self.crop_name,
            "compressed_at_last": f"JPEG of quality {self.jpeg}" if self.jpeg else "no",
            "frost": frost_source(self.frost),
            "schedule": self.schedule.to_card(),
        }


def corruption_stream(
    source: Samples,
    schedule: Schedule,
    *,
    n_images: int,
    batch: int = 64,
    images_per_point: int = 1000,
    seed: Seed = Seed(0),
    crop: bool | None = None,
    jpeg: int | None = None,
    frost: Path | str | None = None,
    corrupt: Corrupt | None = None,
) -> CorruptionStream:
    """Return a stream of `n_images` images, drawn from `source` and corrupted by `schedule`.

    `crop`: whether each image is flipped at random, a random part of it resized to its full size (to 224 pixels if it
    is larger), as in CCC, from the file at its own size if there is one; if not given, only images of 64 pixels or more
    are. Without it, images larger than 224 pixels are resized to 256 and their center of 224 is shown, as in
    ImageNet-C. `jpeg`: the quality with which each image is compressed in the end; ImageNet-C's and CCC's images have
    85. `frost`: a folder with ImageNet-C's photographs of frost. `corrupt` replaces `corruptions.corrupt`.
    """
    shape = tuple(getattr(source.x, "shape", ()))
    _check_images(source, shape)
    _check_numbers(n_images, batch, images_per_point, jpeg)
    if crop is None:
        crop = min(shape[1:3]) >= 64
    cut, crop_name = _random_crops(shape) if crop else _center_crops(shape)
    return CorruptionStream(
        source=source,
        schedule=schedule,
        n_images=n_images,
        batch=batch,
        images_per_point=images_per_point,
        seed=seed,
        corrupt=corrupt or builtin_corruptions(frost),
        crop=cut,
        crop_name=crop_name,
        jpeg=jpeg,
        frost=frost,
    )


def _check_images(source: Samples, shape: tuple[int, ...]) -> None:
    if len(shape) != 4 or shape[3] != 3 or source.x.dtype != np.uint8:
        raise UserError(
            f"corruptions are made for color images in bytes, such as those of color-digits or cifar10; these inputs "
            f"have the shape {shape[1:]}"
        )


def _check_numbers(n_images: int, batch: int, images_per_point: int, jpeg: int | None) -> None:
    for name, value in (("images", n_images), ("batch", batch), ("images_per_point", images_per_point)):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
            raise UserError(f"{name}={value!r}: give a whole number from 1")
    if jpeg is not None and not 1 <= jpeg <= 100:
        raise UserError(f"jpeg={jpeg!r}: give a quality from 1 to 100, or leave it out")


def source_images(dataset: Dataset) -> Samples:
    """Return the images of the official test set or, if there is none, all."""
    return dataset.samples if dataset.test is None else dataset.samples[dataset.test]


def builtin_corruptions(frost: Path | str | None = None) -> Corrupt:
    """Return the corruptions of this package, with photographs of frost from a folder, else synthetic frost."""
    return partial(corruptions.corrupt, frost=frost)


def _random_crops(shape: tuple[int, ...]) -> tuple[Crop, str]:
    side = min(cropping.DEFAULT_SIDE, *shape[1:3])

    def crop(images: LazyRows | np.ndarray, keys: np.ndarray) -> np.ndarray:
        pairs = zip(originals(images), keys.tolist(), strict=True)
        return np.stack([cropping.random_crop(image, key, side) for image, key in pairs])

    return crop, "a random part, flipped at random"


def _center_crops(shape: tuple[int, ...]) -> tuple[Crop, str]:
    larger = min(shape[1:3]) > cropping.DEFAULT_SIDE
    name = "the center of 224 pixels" if larger else "the whole image"  # part of the card
    return lambda images, keys: cropping.center_crops(np.asarray(images)), name


def sample_rows(n: int, images_per_point: int, seed: Seed) -> np.ndarray:
    """Return `images_per_point` of n rows in random order; none repeats before all have occurred."""
    rounds = [seed.child(k).numpy().permutation(n) for k in range(-(-images_per_point // n))]
    return np.concatenate(rounds)[:images_per_point]


def image_keys(seed: Seed, positions: np.ndarray) -> np.ndarray:
    """Return a 64-bit number for each position of a stream, by the finalizer of SplitMix64.

    Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.

    >>> image_keys(Seed(0), np.array([0])).tolist() == [0xE220A8397B1DCDAF]
    True
    """
    z = np.uint64(seed.value) + (np.asarray(positions, np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: np.ndarray = z ^ (z >> np.uint64(31))
    return mixed
