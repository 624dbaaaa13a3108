"""A number of an audit: its value, its 95 % interval and what it is computed from."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from driftline.metrics.confidence import Interval

DRAWS = 500  # bootstrap resamples behind each interval


@dataclass(frozen=True)
class Estimate:
    """A value with its 95 % interval, computed from `n` answers or models. NaN: not known."""

    value: float
    low: float
    high: float
    n: int | None = None
    unit: str | None = None

    @staticmethod
    def from_interval(
        value: float | np.ndarray, interval: Interval, n: int | None = None, unit: str | None = None
    ) -> Estimate:
        """Return an estimate with this interval."""
        low, high = interval
        return Estimate(float(value), float(low), float(high), n if n is None else int(n), unit)

    @property
    def is_known(self) -> bool:
        return math.isfinite(self.value)
