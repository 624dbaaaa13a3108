"""Circular block bootstrap (Politis and Romano 1992) for means of autocorrelated series.

Resampling single steps assumes that they are independent; if they are not, intervals are too narrow. Here blocks of
consecutive steps are drawn. Blocks wrap around from the end to the start, so that all steps are drawn equally often.

Intervals are accurate for series much longer than their correlation length, and a little narrow for shorter ones.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from driftline.errors import UserError
from driftline.metrics.confidence import MAX_RESAMPLED_AT_ONCE

MIN_LAGS = 5


def block_length(values: ArrayLike) -> int:
    """Return a suitable block length, from the autocovariance of the series.

    The rule is that of Politis and White (2004), corrected by Patton, Politis and White (2009), for circular blocks:
    (2 G^2 / D)^(1/3) n^(1/3), where G and D sum autocovariances up to twice the lag after which they are noise.

    >>> noise = np.random.default_rng(0).random(100)
    >>> block_length(noise), block_length(noise.repeat(6))
    (1, 15)
    """
    series = _series(values)
    n = len(series)
    longest = max(1, min(int(np.ceil(3 * np.sqrt(n))), n // 3))
    covariance = _autocovariance(series - series.mean(), 2 * longest)
    if covariance[0] <= 1e-15:  # nothing varies
        return 1
    lags = np.arange(len(covariance))
    reach = 2 * _last_significant_lag(covariance[: longest + 1] / covariance[0], n)
    near = lags / reach if reach else np.where(lags == 0, 0.0, 2.0)
    taper = np.clip(2 * (1 - near), 0, 1)  # flat up to half of the reach, then down to 0
    weights = taper * np.where(lags == 0, 1, 2)  # both sides of lag 0
    G, at_zero = (weights * lags * covariance).sum(), (weights * covariance).sum()
    if at_zero <= 0:  # negatively correlated: single steps are on the safe side
        return 1
    ideal = (1.5 * (G / at_zero) ** 2 * n) ** (1 / 3)
    return int(np.clip(np.ceil(ideal), 1, longest))


def resample_blocks(
    values: ArrayLike, resamples: int, rng: np.random.Generator, length: int | None = None
) -> np.ndarray:
    """Return means (draws,) of the series with resampled blocks; `length` is by default `block_length`.

    >>> resample_blocks([0.5, 0.5, 0.5], resamples=2, rng=np.random.default_rng(0)).tolist()
    [0.5, 0.5]
    """
    series = _series(values)
    n = len(series)
    size = block_length(series) if length is None else length
    if not 1 <= size <= n:
        raise UserError(f"the block length must be from 1 to {n}, the length of the series, not {size}")
    whole, rest = divmod(n, size)  # a shorter block at the end keeps the number of steps
    sums, short = _sums(series, size), _sums(series, rest)
    chunk = max(1, MAX_RESAMPLED_AT_ONCE // whole)
    counts = [min(chunk, resamples - start) for start in range(0, resamples, chunk)]
    drawn = [
        sums[rng.integers(n, size=(count, whole))].sum(axis=1) + short[rng.integers(n, size=count)] for count in counts
    ]
    return np.concatenate(drawn) / n


def _series(values: ArrayLike) -> np.ndarray:
    series = np.asarray(values, float)
    if series.ndim != 1 or not len(series) or not np.isfinite(series).all():
        raise UserError("a series must be one-dimensional, not empty, and finite")
    return series


def _sums(series: np.ndarray, size: int) -> np.ndarray:
    """Return the sum of the block of this size that begins at each step."""
    running = np.concatenate([[0.0], np.cumsum(np.concatenate([series, series[:size]]))])
    return np.asarray(running[size : size + len(series)] - running[: len(series)])


def _autocovariance(centered: np.ndarray, lags: int) -> np.ndarray:
    n = len(centered)
    return np.array([centered[: n - k] @ centered[k:] / n for k in range(min(lags, n - 1) + 1)])


def _last_significant_lag(correlation: np.ndarray, n: int) -> int:
    """Return the lag before the first run of insignificant correlations, else the last significant lag."""
    run = max(MIN_LAGS, int(np.ceil(np.sqrt(np.log10(n)))))
    small = np.abs(correlation[1:]) < 2 * np.sqrt(np.log10(n) / n)
    for lag in range(len(small) - run + 1):
        if small[lag : lag + run].all():
            return lag
    large = np.flatnonzero(~small)
    return int(large[-1]) + 1 if len(large) else 0
