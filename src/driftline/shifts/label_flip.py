"""Label flip: what was one class is now called another, the block L of Ji et al., "Seq-to-Final".

Flips alternate between two rules, each on top of the ones before. The paper's appendix has trucks become horses at the
second flip; its section 2.2 and its code have them become cars, and so do we.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from driftline.registry import register
from driftline.shifts.base import LABELS, Shift, Target


@register("shift", "L")
@dataclass(frozen=True)
class LabelFlip(Shift):
    """Of K classes, the first and third flip make y into K - 1 - y, and the second makes it into y + 2 modulo K."""

    priority: ClassVar[int] = LABELS
    target: ClassVar[Target] = "labels"
    max_count: ClassVar[tuple[int, str]] = (3, "four flips restore the labels, so that the change would be reversed")

    def relabel(self, labels: np.ndarray, earlier: int, classes: int) -> np.ndarray:
        return classes - 1 - labels if earlier % 2 == 0 else (labels + 2) % classes

    def why_not(self, shape: tuple[int, ...], classes: int, earlier: int) -> str:
        seen = [np.arange(classes)]
        for flips in range(earlier + 1):
            seen.append(self.relabel(seen[-1], flips, classes))
        if not any(np.array_equal(seen[-1], old) for old in seen[:-1]):
            return ""
        return f"with {classes} classes, {earlier + 1} label flip(s) give labels that there have been before"
