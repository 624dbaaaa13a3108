"""Rotation: the blocks R (all images) and r (one way or the other, by class) of Ji et al., "Seq-to-Final".

Angles accumulate over the sequence, and the original image is turned once. The result is that of torchvision's `rotate`
on tensors, bit for bit (nearest neighbor, same size, about the center, black where nothing was): the same arithmetic
in single precision finds, once for each angle, which pixel every pixel comes from.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from driftline.registry import register
from driftline.shifts.base import ROTATION, Shift


@register("shift", "R")
@dataclass(frozen=True)
class Rotation(Shift):
    """Turn every image by `amount` degrees, counter-clockwise."""

    amount: float = 30

    priority: ClassVar[int] = ROTATION
    amount_range: ClassVar[tuple[float, float]] = (-359.9, 359.9)

    def angles(self, labels: np.ndarray) -> np.ndarray:
        """Return the angle of each image."""
        return np.full(len(labels), float(self.amount))

    @classmethod
    def apply_all(
        cls, shifts: Sequence[Shift], images: np.ndarray, labels: np.ndarray, rng: np.random.Generator, white: float
    ) -> np.ndarray:
        return rotate(images, sum((s.angles(labels) for s in shifts if isinstance(s, Rotation)), np.zeros(len(labels))))


@register("shift", "r")
@dataclass(frozen=True)
class ConditionalRotation(Rotation):
    """Turn images of even classes by `amount` degrees counter-clockwise, and those of odd classes clockwise."""

    def angles(self, labels: np.ndarray) -> np.ndarray:
        return np.where(labels % 2 == 0, self.amount, -self.amount).astype(float)


def rotate(images: np.ndarray, angles: np.ndarray) -> np.ndarray:
    """Return each image turned by its angle in degrees, counter-clockwise."""
    n, height, width, channels = images.shape
    flat = images.reshape(n, height * width, channels)
    turned = np.empty_like(flat)
    angles = angles % 360
    for angle in np.unique(angles):
        rows = np.flatnonzero(angles == angle)
        if not angle:
            turned[rows] = flat[rows]
            continue
        source = source_pixels(height, width, float(angle))
        turned[rows] = np.where(source[:, np.newaxis] < 0, 0, np.take(flat[rows], source, axis=1))
    return turned.reshape(images.shape)


def source_pixels(height: int, width: int, angle: float) -> np.ndarray:
    """Return the index in the flattened original of each pixel of a turned image; -1 if it is outside.

    >>> source_pixels(2, 2, 90).tolist()
    [1, 3, 0, 2]
    """
    single = np.float32
    cos, sin = single(math.cos(math.radians(angle))), single(math.sin(math.radians(angle)))
    x = (np.arange(width) - (width - 1) / 2).astype(single)[np.newaxis]
    y = (np.arange(height) - (height - 1) / 2).astype(single)[:, np.newaxis]
    half_width, half_height = single(0.5 * width), single(0.5 * height)
    from_x = x * (cos / half_width) + y * (-sin / half_width)  # from -1 at the left edge to 1 at the right
    from_y = x * (sin / half_height) + y * (cos / half_height)
    column = np.rint(((from_x + single(1)) * single(width) - single(1)) / single(2)).astype(np.int64)
    row = np.rint(((from_y + single(1)) * single(height) - single(1)) / single(2)).astype(np.int64)
    inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
    return np.where(inside, row * width + column, -1).ravel()
