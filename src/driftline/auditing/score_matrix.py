"""Scores of every model in every period, and the precision of what is computed from them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from driftline.auditing.estimate import Estimate
from driftline.auditing.interaction import effects

Z95 = 1.959964


@dataclass(frozen=True, eq=False)
class ScoreMatrix:
    """Scores of half-models: `rows[h][t, i]` of the model of half h and period t on test row i of the other half.

    The mean over the rows of a period is the score of the model there.
    """

    rows: tuple[np.ndarray, np.ndarray]
    periods: tuple[np.ndarray, np.ndarray]
    """The period of each test row."""

    @property
    def size(self) -> int:
        return len(self.rows[0])

    @cached_property
    def halves(self) -> np.ndarray:
        """Mean scores (2, T, T) of each half's models."""
        return np.stack([cell_means(x, period, self.size) for x, period in zip(self.rows, self.periods, strict=True)])

    @cached_property
    def mean(self) -> np.ndarray:
        """A[t, tau]: the mean over the two halves."""
        return np.asarray(self.halves.mean(axis=0))

    @cached_property
    def counts(self) -> np.ndarray:
        """Test rows by period, of both halves."""
        return np.asarray(sum(np.bincount(period, minlength=self.size) for period in self.periods))

    @cached_property
    def training_variance(self) -> float:
        """Variance of a model's score due to its training rows: from how the row effects of the halves differ."""
        if self.size < 3:
            return 0.0
        one, other = (effects(half).rows for half in self.halves)
        return float(np.mean((one - other) ** 2) / 4)

    def contrast(self, weights: np.ndarray) -> tuple[float, float]:
        """Return a weighted sum of the cells of A[t, tau] and its standard error, given the course of the world.

        The error has two parts: the test rows, and the training rows of each model. The variance over rows is not
        halved for the two halves, because they repeat each other on the diagonal.
        """
        variance = 0.0
        for x, period in zip(self.rows, self.periods, strict=True):
            combined = (weights[:, period] * x).sum(axis=0)
            n = np.maximum(np.bincount(period, minlength=self.size), 1)
            mean = np.bincount(period, combined, self.size) / n
            squares = np.bincount(period, (combined - mean[period]) ** 2, self.size) / n
            variance += float((squares / n).sum()) / 2
        variance += self.training_variance * float((weights.sum(axis=1) ** 2).sum())
        return float((weights * self.mean).sum()), float(np.sqrt(variance))

    def estimate(self, weights: np.ndarray, n: int | None = None, unit: str | None = None) -> Estimate:
        """Return a weighted sum of cells with its 95 % interval."""
        value, error = self.contrast(weights)
        return Estimate(value, value - Z95 * error, value + Z95 * error, n, unit)

    def ratio(self, above: np.ndarray, below: np.ndarray, n: int | None = None, unit: str | None = None) -> Estimate:
        """Return the ratio of two weighted sums with its 95 % interval (delta method); NaN if the second is 0."""
        denominator = float((below * self.mean).sum())
        if abs(denominator) < 1e-9:
            return Estimate(np.nan, np.nan, np.nan, n, unit)
        value = float((above * self.mean).sum()) / denominator
        error = self.contrast(above - value * below)[1] / abs(denominator)
        return Estimate(value, value - Z95 * error, value + Z95 * error, n, unit)

    def scaled(self, scales: tuple[np.ndarray, np.ndarray]) -> ScoreMatrix:
        """Return the skill 1 - loss / scale, with a scale for each test row."""
        return ScoreMatrix(tuple(1 - x / scale for x, scale in zip(self.rows, scales, strict=True)), self.periods)


def cell_means(values: np.ndarray, periods: np.ndarray, size: int) -> np.ndarray:
    """Return the mean over the rows of each period, of each line of `values`."""
    counts = np.maximum(np.bincount(periods, minlength=size), 1)
    return np.stack([np.bincount(periods, line, size) / counts for line in values])
