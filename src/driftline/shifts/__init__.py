"""Shifts: building blocks that change samples, and the notation for sequences of them.

One file per block or close family, registered under a letter. Your own block is a short file, too:

    @dataclass(frozen=True)
    class Fade(Shift):
        amount: float = 10
        amount_range = (1, 100)

        def images(self, images, labels, rng, white):
            return images * (1 - self.amount / 100)

written `fade.py:Fade` or `fade.py:Fade=20` in a sequence.
"""

from driftline.corruptions import corrupt
from driftline.shifts.apply import apply, apply_to_images, apply_to_labels, check_shifts, white_level
from driftline.shifts.base import Shift
from driftline.shifts.notation import ShiftNotation, ShiftSteps, parse

__all__ = [
    "Shift",
    "ShiftNotation",
    "ShiftSteps",
    "apply",
    "apply_to_images",
    "apply_to_labels",
    "check_shifts",
    "corrupt",
    "parse",
    "white_level",
]
