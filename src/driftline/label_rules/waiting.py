"""Labels that are revealed later."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from driftline.types import Inputs, take_rows


class Waiting(NamedTuple):
    """Labels that are not revealed yet."""

    due: int
    """The step at which they arrive, without the delay that all labels have."""
    x: Inputs
    y: np.ndarray
    split: np.ndarray | None
    known: np.ndarray | None
    """When they become known, if there are such times, as numbers."""
    positions: np.ndarray
    correct: np.ndarray | None
    """Whether the answers agree with these labels, if a rule asks."""

    def take(self, rows: np.ndarray) -> Waiting:
        """Return the labels of some rows."""
        others = (None if column is None else column[rows] for column in self[2:])
        return Waiting(self.due, take_rows(self.x, rows), *others)  # type: ignore[arg-type]

    def split_at(self, now: float) -> tuple[Waiting | None, Waiting | None]:
        """Return the labels that are known by now, and the others."""
        if self.known is None or (self.known <= now).all():
            return self, None
        by_now = self.known <= now
        return (self.take(np.flatnonzero(by_now)) if by_now.any() else None), self.take(np.flatnonzero(~by_now))
