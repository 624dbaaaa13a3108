"""Uniform noise in every pixel and channel ("corruption"), the block C of Ji et al., "Seq-to-Final"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from driftline.registry import register
from driftline.shifts.base import CORRUPTION, Shift

NOISE_BATCH = 4096  # images per draw of noise


@register("shift", "C")
@dataclass(frozen=True)
class UniformNoise(Shift):
    """Add whole numbers drawn evenly from -amount to amount - 1 (by default -3 to 2), then cut off at black and white.

    Two corruptions are two draws with a cut after each. In images from 0 to 1 the noise is divided by 256.
    """

    amount: float = 3

    priority: ClassVar[int] = CORRUPTION
    amount_range: ClassVar[tuple[float, float]] = (1, 255)

    def images(self, images: np.ndarray, labels: np.ndarray, rng: np.random.Generator, white: float) -> np.ndarray:
        noisy, strength = np.empty_like(images), int(self.amount)
        for start in range(0, len(images), NOISE_BATCH):
            part = images[start : start + NOISE_BATCH]
            noise = rng.integers(-strength, strength, part.shape, np.int16)
            moved = part + (noise if white > 1 else noise / images.dtype.type(256))
            noisy[start : start + NOISE_BATCH] = moved.clip(0, white)
        return noisy

    def why_not(self, shape: tuple[int, ...], classes: int, earlier: int) -> str:
        return "" if self.amount == int(self.amount) else f"its noise is in whole steps, not {self.amount:g}"
