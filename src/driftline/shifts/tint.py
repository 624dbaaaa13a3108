"""Tint: the block T (red) of Ji et al., "Seq-to-Final", and t of its code (a color by class).

Tints accumulate over the sequence; they are added once and then cut off at white. In images from 0 to 1 an amount
counts in parts of 255.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from driftline.registry import register
from driftline.shifts.base import TINT, Shift

N_CHANNELS = 3


@register("shift", "T")
@dataclass(frozen=True)
class Tint(Shift):
    """Add `amount`, of 255, to the red of every image."""

    amount: float = 30

    priority: ClassVar[int] = TINT
    amount_range: ClassVar[tuple[float, float]] = (-255, 255)

    def channels(self, labels: np.ndarray) -> np.ndarray:
        """Return the tinted channel of each image."""
        return np.zeros(len(labels), np.int64)

    @classmethod
    def apply_all(
        cls, shifts: Sequence[Shift], images: np.ndarray, labels: np.ndarray, rng: np.random.Generator, white: float
    ) -> np.ndarray:
        tints = np.zeros((len(labels), N_CHANNELS))
        for shift in shifts:
            if isinstance(shift, Tint):
                tints[np.arange(len(labels)), shift.channels(labels)] += shift.amount
        tints = np.rint(tints) if images.dtype == np.uint8 else tints
        tinted, kind = images.copy(), np.result_type(images.dtype, np.float32)
        for channel in range(N_CHANNELS):
            more = (tints[:, channel] * white / 255)[:, np.newaxis, np.newaxis].astype(kind)
            if more.any():
                tinted[..., channel] = (images[..., channel] + more).clip(0, white)
        return tinted

    def why_not(self, shape: tuple[int, ...], classes: int, earlier: int) -> str:
        return (
            "" if shape[-1] == N_CHANNELS else f"it adds a color, and these images have {shape[-1]} channel(s), not 3"
        )


@register("shift", "t")
@dataclass(frozen=True)
class ConditionalTint(Tint):
    """Add `amount` to the red of classes 0, 3, 6, ..., to the green of 1, 4, 7, ... and to the blue of 2, 5, 8, ..."""

    def channels(self, labels: np.ndarray) -> np.ndarray:
        return np.asarray(labels) % N_CHANNELS
