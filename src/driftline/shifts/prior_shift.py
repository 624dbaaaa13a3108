"""Shifts of proportions: the sub-population shift s of Ji et al., "Seq-to-Final", and l of its code."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from driftline.errors import UserError
from driftline.registry import register
from driftline.shifts.base import SAMPLING, Shift, Target

MAX_SUBCLASSES = 3  # sub-classes of a class present after the first shift


@register("shift", "l")
@dataclass(frozen=True)
class LabelShift(Shift):
    """Of K classes, the even ones lose amount / K of probability each, and the odd ones gain it."""

    amount: float = 0.3

    priority: ClassVar[int] = SAMPLING
    target: ClassVar[Target] = "sampling"
    amount_range: ClassVar[tuple[float, float]] = (0.001, 1)

    def class_proportions(self, shares: list[Fraction]) -> list[Fraction]:
        """Return the new proportions; with an odd number of classes, the remainder is spread in proportion.

        >>> [str(share) for share in LabelShift().class_proportions([Fraction(1, 2)] * 2)]
        ['7/20', '13/20']
        """
        step = Fraction(str(self.amount)) / len(shares)
        moved = [share + step if k % 2 else share - step for k, share in enumerate(shares)]
        if min(moved) <= 0:
            raise UserError(f"{self}: the label shifts so far would leave nothing of the even classes; use less of it")
        return [share / sum(moved) for share in moved]


@register("shift", "s")
@dataclass(frozen=True)
class SubpopulationShift(Shift):
    """A further sub-class enters each class; once three are there, the oldest leaves. At first there are two."""

    priority: ClassVar[int] = SAMPLING
    target: ClassVar[Target] = "sampling"
    max_count: ClassVar[tuple[int, str]] = (3, "two of five sub-classes are there at first, so that no more can enter")
    needs_subclasses: ClassVar[bool] = True

    def subclass_proportions(self, shares: list[Fraction]) -> list[Fraction]:
        """Return equal shares with one more sub-class.

        >>> [str(share) for share in SubpopulationShift().subclass_proportions([Fraction(1, 3)] * 3 + [Fraction(0)])]
        ['0', '1/3', '1/3', '1/3']
        """
        present = [k for k, share in enumerate(shares) if share]
        entering = present[-1] + 1
        if entering == len(shares):
            raise UserError(f"{self}: a class has {len(shares)} sub-classes, and all of them have entered already")
        present = [*present, entering][-MAX_SUBCLASSES:]
        return [Fraction(1, len(present)) if k in present else Fraction(0) for k in range(len(shares))]
