"""Random augmentations of training images: by name (`augmented`), and Seq-to-Final's.

    crop-flip      a random part, 8 to 100 % of the area and 3:4 to 4:3 in shape, resized to the image's size and
                   flipped with probability 1/2, as in training on ImageNet; the part is of the full-size image
    pad-crop-flip  four black pixels on each side, a random part of the image's size, flipped with probability 1/2, as
                   in training on CIFAR

Draws come from a named seed for each training round, so that a run that is resumed makes the same ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import cast

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample

from driftline.corruptions import cropping
from driftline.errors import UserError
from driftline.lazy_rows import LazyRows, originals
from driftline.seeds import Seed

PADDING = 4  # pixels on each side
MAX_ROTATION = 10.0  # degrees, either way
MAX_TRANSLATION = 2  # pixels, either way


def random_flip_rotate_translate(x: Tensor) -> Tensor:
    """Return images (n, channels, height, width), each flipped at random, slightly rotated and translated.

    Pixels outside the image repeat its edge. Seq-to-Final's augmentation: flips, crops after padding by two pixels,
    rotations by up to ten degrees.
    """
    n, height, width = len(x), *x.shape[2:]
    return flip_rotate_translate(
        x,
        flip=torch.rand(n) < 0.5,
        rotation=(2 * torch.rand(n) - 1) * MAX_ROTATION,
        right=torch.randint(-MAX_TRANSLATION, MAX_TRANSLATION + 1, (n,)) * 2 / width,
        down=torch.randint(-MAX_TRANSLATION, MAX_TRANSLATION + 1, (n,)) * 2 / height,
    )


def flip_rotate_translate(x: Tensor, flip: Tensor, rotation: Tensor, right: Tensor, down: Tensor) -> Tensor:
    """Flip the chosen images, rotate by degrees, and translate by fractions of half the size."""
    angle, sign = rotation * (math.pi / 180), torch.where(flip, -1.0, 1.0)
    rows = [
        torch.stack([sign * angle.cos(), -angle.sin(), -right], dim=1),
        torch.stack([sign * angle.sin(), angle.cos(), -down], dim=1),
    ]
    grid = affine_grid(torch.stack(rows, dim=1), list(x.shape), align_corners=False).to(x.device)
    return grid_sample(x, grid, mode="bilinear", padding_mode="border", align_corners=False)


def crop_flip(image: np.ndarray, height: int, width: int, rng: np.random.Generator) -> np.ndarray:
    """Return a random part of an image of bytes, resized, and flipped at random."""
    top, left, h, w = cropping.random_box(image.shape[0], image.shape[1], rng)
    part = cropping.resize(image[top : top + h, left : left + w], height, width)
    return _flip_by_chance(part, rng)


def pad_crop_flip(image: np.ndarray, height: int, width: int, rng: np.random.Generator) -> np.ndarray:
    """Return a random part of an image of bytes with a black border, flipped at random."""
    padded = np.pad(image, ((PADDING, PADDING), (PADDING, PADDING), (0, 0)))
    top, left = rng.integers(2 * PADDING + 1, size=2)
    return _flip_by_chance(padded[top : top + height, left : left + width], rng)


def _flip_by_chance(image: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return image[:, ::-1] if rng.random() < 0.5 else image


AUGMENTATIONS: Mapping[str, Callable[[np.ndarray, int, int, np.random.Generator], np.ndarray]] = {
    "crop-flip": crop_flip,
    "pad-crop-flip": pad_crop_flip,
}


class AugmentedImages:
    """Images of bytes, augmented again each time they are read."""

    dtype = np.dtype(np.uint8)

    def __init__(self, images: LazyRows | np.ndarray, name: str, seed: Seed) -> None:
        self.shape = tuple(images.shape)
        self._images, self._name, self._rng = images, name, seed.numpy()

    def __getitem__(self, rows: np.ndarray, /) -> np.ndarray:
        chosen = self._images.take(rows) if isinstance(self._images, LazyRows) else self._images[rows]
        images = originals(chosen) if self._name == "crop-flip" else np.asarray(chosen)
        height, width = self.shape[1:3]
        return np.stack([AUGMENTATIONS[self._name](image, height, width, self._rng) for image in images])


def augmented(images: Tensor, name: str, seed: Seed) -> Tensor:
    """Return images that are augmented each time a batch of them is read; with "none", as they are."""
    if name == "none":
        return images
    rows = images if isinstance(images, LazyRows) else images.numpy()
    if len(rows.shape) != 4 or rows.dtype != np.uint8:
        raise UserError(f"augment={name} is for images in bytes, and these inputs are of another kind: leave it out")
    return cast(Tensor, LazyRows.all_of(AugmentedImages(rows, name, seed.child("augment"))))
