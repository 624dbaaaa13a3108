"""A number of an audit: its value, its 95 % interval and what it is computed from."""

from __future__ import annotations

import math
from dataclasses import dataclass

DRAWS = 500  # bootstrap resamples behind each interval


@dataclass(frozen=True)
class Estimate:
    """A value with its 95 % interval, computed from `n` answers or models. NaN: not known."""

    value: float
    low: float
    high: float
    n: int | None = None
    unit: str | None = None

    @property
    def is_known(self) -> bool:
        return math.isfinite(self.value)
