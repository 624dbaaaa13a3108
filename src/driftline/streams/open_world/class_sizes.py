"""Long-tailed class sizes: the number of samples of the class of each rank.

Wallingford et al., "In the Wild: From ML Models to Pragmatic ML Systems", 2020 (NED), speaks of Zipf's law with s = 1.
Its label files follow floor(25000 / (25 + r)) for the ranks r = 1 to 1000, which is Zipf's law on ranks that begin at
26: the counts are 961, 925, 892 and so on, not 961, 480, 320. Where a class has fewer samples, it gives what it has.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from driftline.errors import UserError

NUMBER = r"(\d+(?:\.\d*)?|\.\d+)"
LAW_PATTERN = re.compile(rf"{NUMBER}/(?:r|\({NUMBER}\+r\)|\(r\+{NUMBER}\))(?:(?:\^|\*\*){NUMBER})?")
TOLERANCE = 1e-9  # to a computer, 3.3 / (0.1 + 1) is a little below 3


@dataclass(frozen=True)
class ClassSizeLaw:
    """The class of rank r = 1, 2, ... has floor(scale / (offset + r) ^ exponent) samples; offset 0 is Zipf's law.

    >>> ClassSizeLaw(25_000, 25).counts(1000)[[0, 1, 2, 464, 465, 999]].tolist()
    [961, 925, 892, 51, 50, 24]
    """

    scale: float
    offset: float = 0.0
    exponent: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.scale < np.inf:
            raise UserError(f"a law with the scale {self.scale}: give a number above 0")
        if not 0 <= self.offset < np.inf or not 0 <= self.exponent < np.inf:
            raise UserError(
                f"a law with the offset {self.offset} and the exponent {self.exponent}: give numbers from 0 on"
            )

    @staticmethod
    def parse(text: str) -> ClassSizeLaw:
        """Parse a law as it is written on a card.

        >>> ClassSizeLaw.parse("25000 / (25 + r)")
        ClassSizeLaw(scale=25000.0, offset=25.0, exponent=1.0)
        >>> print(ClassSizeLaw.parse("1000/r^1.5"))
        1000/r^1.5
        """
        found = LAW_PATTERN.fullmatch("".join(str(text).split()))
        if found is None:
            raise UserError(f"'{text}' is not a law of class sizes: write '25000/(25+r)', '1000/r' or '1000/r^1.5'")
        scale, before, after, exponent = found.groups()
        return ClassSizeLaw(float(scale), float(before or after or 0), float(exponent or 1))

    def __str__(self) -> str:
        scale, offset, exponent = (_format_number(x) for x in (self.scale, self.offset, self.exponent))
        ranks = f"({offset}+r)" if self.offset else "r"
        return f"{scale}/{ranks}" + (f"^{exponent}" if self.exponent != 1 else "")

    def counts(self, classes: int) -> np.ndarray:
        """Return the class sizes of ranks 1 to `classes`; refuse if the last class would be empty."""
        share = self.scale / (self.offset + np.arange(1, classes + 1)) ** self.exponent
        counts: np.ndarray = np.floor(share * (1 + TOLERANCE)).astype(np.int64)
        if classes and counts[-1] < 1:
            last = int((counts > 0).sum())
            raise UserError(
                f"by the law {self} only the first {last} of {classes} classes have a sample: give a larger scale, or "
                "fewer classes"
            )
        return counts


def _format_number(number: float) -> str:
    """Return a number without an exponent, such as 25000 or 0.5."""
    return np.format_float_positional(number, trim="-")
