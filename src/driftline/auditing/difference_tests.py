"""Permutation tests that need no order of time: do periods differ, is one of them odd, do new models get worse?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

from driftline.auditing.interaction import doubly_centered
from driftline.auditing.order_test import permutations

COURSE_PERMUTATIONS = 9999


def difference_test(halves: np.ndarray, random: np.random.Generator) -> float:
    """Return the p-value of "all rows come from one distribution"; `halves`: loss matrices (2, T, T).

    The statistic is the advantage of a model in its own period. Under the null hypothesis the first half of one period
    may be paired with the second half of any other. One permutation moves the first halves in both matrices: they are
    the rows of one and the columns of the other.
    """
    one, other = map(doubly_centered, halves)
    order = permutations(len(one), random)
    own = np.arange(len(one))
    advantage = -(one[order, own] + other[own, order]).sum(axis=1)
    return float((advantage >= advantage[0] - 1e-12).mean())


@dataclass(frozen=True)
class OddPeriod:
    """The period whose own model has the largest advantage there."""

    index: int
    p: float
    """Corrected for the number of periods."""


def odd_period(losses: tuple[np.ndarray, np.ndarray], periods: tuple[np.ndarray, np.ndarray]) -> OddPeriod:
    """Return the period that is most unlike all others.

    `losses`: of each half, the loss of each model (rows) on each test row; `periods`: the period of each row. The
    two halves repeat each other in a model's own period, so the variance of their mean is not halved. Losses are
    skewed: a period that happens to have none of the rare large ones also has a small variance, so its variance counts
    as at least that of the other rows.
    """
    size = len(losses[0])
    gaps, variances = np.zeros(size), np.zeros(size)
    for loss, period in zip(losses, periods, strict=True):
        total = loss.sum(axis=0)
        own_loss = loss[period, np.arange(len(period))]
        for t in range(size):
            inside = period == t
            own = (total[inside] - loss[t, inside]) / (size - 1) - loss[t, inside]
            other = (total - own_loss - loss[t])[~inside] / (size - 2) - loss[t, ~inside]
            gaps[t] += (own.mean() - other.mean()) / 2
            variances[t] += (max(own.var(), other.var()) / len(own) + other.var() / len(other)) / 2
    z = gaps / np.sqrt(np.maximum(variances, 1e-300))
    index = int(z.argmax())
    return OddPeriod(index, float(min(1.0, size * norm.sf(z[index]))))


@dataclass(frozen=True)
class Course:
    """The best trend or step in a series of values."""

    p: float
    change: float
    """Fitted last value minus fitted first value."""
    start: int | None
    """First period after a step; None for a trend."""
    first: float
    last: float


def course_test(values: np.ndarray, random: np.random.Generator) -> Course:
    """Test a series for a trend or a step, by permuting it."""
    size = len(values)
    t = np.arange(size, dtype=float)
    profiles = [t, *((t >= start).astype(float) for start in range(1, size))]
    weights = np.array([profile - profile.mean() for profile in profiles])
    weights /= np.linalg.norm(weights, axis=1)[:, None]
    order = np.tile(np.arange(size), (COURSE_PERMUTATIONS + 1, 1))
    order[1:] = random.permuted(order[1:], axis=1)
    largest = np.abs(values[order] @ weights.T).max(axis=1)
    best = int(np.abs(weights @ values).argmax())
    fitted = values.mean() + weights[best] * (weights[best] @ values)
    p = float((largest >= largest[0] - 1e-12).mean())
    return Course(p, float(fitted[-1] - fitted[0]), None if best == 0 else best, float(fitted[0]), float(fitted[-1]))
