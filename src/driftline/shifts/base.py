"""The base class of shifts: one kind of change, with an amount; shifts are applied in a fixed order."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np

CORRUPTION, ROTATION, TINT, CUSTOM, LABELS, SAMPLING = range(6)
"""The order of application, whatever the order in the sequence. A user's own block is CUSTOM."""

Target = Literal["images", "labels", "sampling"]


@dataclass(frozen=True)
class Shift:
    """One kind of change. A subclass implements the one method that its `target` needs and never alters its arguments.

    Images are bytes, or floats from 0 to `white`, of shape (n, height, width, channels). Labels are those that the
    images came with, before any change of labels.
    """

    amount: float = 0.0

    priority: ClassVar[int] = CUSTOM
    target: ClassVar[Target] = "images"
    amount_range: ClassVar[tuple[float, float] | None] = None
    """The smallest and largest amount; None if it takes no amount."""
    max_count: ClassVar[tuple[int, str] | None] = None
    """How often it may occur in a sequence, and the reason for the limit."""
    needs_subclasses: ClassVar[bool] = False
    """Whether it needs classes that are divided into sub-classes, and draws by them."""

    def images(self, images: np.ndarray, labels: np.ndarray, rng: np.random.Generator, white: float) -> np.ndarray:
        """Return the changed images; if they are bytes, values beyond black and white are clipped afterwards."""
        raise NotImplementedError(f"{type(self).__name__} changes images but does not implement it")

    @classmethod
    def apply_all(
        cls, shifts: Sequence[Shift], images: np.ndarray, labels: np.ndarray, rng: np.random.Generator, white: float
    ) -> np.ndarray:
        """Apply several shifts of one family: one after another, unless they accumulate."""
        for shift in shifts:
            images = shift.images(images, labels, rng, white)
        return images

    def relabel(self, labels: np.ndarray, earlier: int, classes: int) -> np.ndarray:
        """Return the changed labels, after `earlier` shifts of the same kind."""
        raise NotImplementedError(f"{type(self).__name__} changes labels but does not implement it")

    def class_proportions(self, shares: list[Fraction]) -> list[Fraction]:
        """Return the new class proportions, given the old ones."""
        return shares

    def subclass_proportions(self, shares: list[Fraction]) -> list[Fraction]:
        """Return the new proportions of a class's sub-classes, given the old ones."""
        return shares

    def why_not(self, shape: tuple[int, ...], classes: int, earlier: int) -> str:
        """Return why it cannot be applied to images of this shape and this many classes; empty if it can."""
        return ""

    def __str__(self) -> str:
        words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(self).__name__).lower()
        usual = {field.name: field.default for field in fields(self)}["amount"]
        return words if self.amount == usual else f"{words} {self.amount:g}"
