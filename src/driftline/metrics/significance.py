"""Significance of differences between methods: paired tests, Holm's correction, and mean ranks over several settings.

Methods with the same seed run on the same stream, so they are compared in pairs, by seed. The main test is Student's t.
An exact sign-flip test, which assumes no normal distribution, complements it; with three to five seeds it cannot reach
5%, because the smallest p of n pairs is 2 / 2^n. Comparing all methods with the best one favors that one a little;
Holm's correction does not undo this.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from driftline.errors import UserError
from driftline.metrics.confidence import t_interval_over_seeds
from driftline.seeds import Seed

TIE_TOLERANCE = 1e-12  # two numbers that should be the same may differ in their last bits
MAX_ENUMERATED = 16  # pairs whose 2^n signs are all tried
N_RANDOM_FLIPS = 100_000  # random signs for more pairs than that


class Difference(NamedTuple):
    """The mean of n paired differences, its 95% interval, and p of there being none; NaN where n is too small."""

    value: float
    low: float
    high: float
    n: int
    p: float


class Ranks(NamedTuple):
    """Each method's mean rank over n settings (1 is best), and Friedman's test that all methods are equal."""

    mean: np.ndarray
    n: int
    statistic: float
    p: float


def paired_t_test(differences: ArrayLike) -> Difference:
    """Return Student's paired t-test of one number per pair, with its t-interval; NaN pairs are left out.

    t = mean / (s / sqrt(n)) with n - 1 degrees of freedom, two-sided.

    >>> found = paired_t_test([0.01, 0.02, 0.03])
    >>> round(found.value, 4), round(float(found.low), 4), round(float(found.high), 4), found.n, round(found.p, 4)
    (0.02, -0.0048, 0.0448, 3, 0.0742)
    """
    known = _known(differences)
    n, value = len(known), float(known.mean()) if len(known) else np.nan
    low, high = t_interval_over_seeds(known) if n > 1 else (np.nan, np.nan)
    return Difference(value, float(low), float(high), n, _t_test_p_value(known))


def _t_test_p_value(known: np.ndarray) -> float:
    if len(known) < 2:
        return np.nan
    mean, error = abs(known.mean()), known.std(ddof=1) / np.sqrt(len(known))
    if mean <= TIE_TOLERANCE:
        return 1.0
    if error == 0:
        return 0.0
    return float(2 * special.stdtr(len(known) - 1, -mean / error))


def sign_flip(differences: ArrayLike) -> float:
    """Return the exact two-sided p-value: the share of sign flips whose mean is as far from 0 as the observed one.

    Without a difference both signs of each pair are equally likely. Above 16 pairs, 100,000 random flips
    stand for all.

    >>> sign_flip([0.01, 0.02, 0.03])
    0.25
    """
    known = _known(differences)
    n = len(known)
    if not n:
        return np.nan
    if n <= MAX_ENUMERATED:
        signs = np.array(list(product((1, -1), repeat=n - 1))).reshape(2 ** (n - 1), n - 1)
        # a set of signs and its mirror image give the same distance, so the first sign may stay
        return float((np.abs(known[0] + signs @ known[1:]) >= abs(known.sum()) - TIE_TOLERANCE).mean())
    signs = Seed(0).child("sign-flip").numpy().choice((-1, 1), size=(N_RANDOM_FLIPS, n))
    extreme = (np.abs(signs @ known) >= abs(known.sum()) - TIE_TOLERANCE).sum()
    return float((extreme + 1) / (N_RANDOM_FLIPS + 1))


def holm(p: ArrayLike) -> np.ndarray:
    """Return p-values corrected for their number m (Holm 1979): the k-th smallest times m - k + 1, never falling.

    Rejecting corrected p-values of at most 5% keeps the family-wise error at or below 5%. NaN (no test) is ignored.

    >>> holm([0.01, 0.04, 0.03, np.nan]).round(6).tolist()
    [0.03, 0.06, 0.06, nan]
    """
    given = np.asarray(p, float)
    if ((given < 0) | (given > 1)).any():
        raise UserError("p-values are between 0 and 1, or NaN where nothing was tested")
    order = np.argsort(given, kind="stable")[: np.isfinite(given).sum()]  # NaN is sorted to the end
    adjusted = np.full(given.shape, np.nan)
    steps = given[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(1, np.maximum.accumulate(steps))
    return adjusted


def friedman(values: ArrayLike, better: str = "higher") -> Ranks:
    """Return mean ranks of methods (columns) over settings (rows), and Friedman's chi-squared test, tie-corrected.

    Methods that tie share the mean of their ranks. Chi-squared is an approximation, and rough for few settings.

    >>> ranks = friedman([[0.9, 0.8, 0.7], [0.8, 0.8, 0.6], [0.7, 0.6, 0.5]])
    >>> ranks.mean.round(4).tolist(), ranks.n, round(ranks.statistic, 4), round(ranks.p, 4)
    ([1.1667, 1.8333, 3.0], 3, 5.6364, 0.0597)
    """
    table = np.asarray(values, float)
    if table.ndim != 2 or min(table.shape) < 2 or not np.isfinite(table).all():
        raise UserError(
            "ranks need two settings and two methods at least, and a number for each method in each setting"
        )
    (n, k), ranks = table.shape, np.stack([average_ranks(row, better) for row in table])
    means = ranks.mean(axis=0)
    spread = ((ranks - (k + 1) / 2) ** 2).sum() / (n * (k - 1))  # k (k + 1) / 12 without ties
    if spread == 0:
        return Ranks(means, n, 0.0, 1.0)
    statistic = float(n * ((means - (k + 1) / 2) ** 2).sum() / spread)
    return Ranks(means, n, statistic, float(special.chdtrc(k - 1, statistic)))


def average_ranks(values: ArrayLike, better: str = "higher") -> np.ndarray:
    """Return the rank of each value, 1 for the best; ties share the mean of their ranks.

    >>> average_ranks([0.5, 0.9, 0.5]).tolist(), average_ranks([0.5, 0.9, 0.5], "lower").tolist()
    ([2.5, 1.0, 2.5], [1.5, 3.0, 1.5])
    """
    given = np.asarray(values, float)
    lead = (given[:, None] - given[None, :]) * (1 if better == "higher" else -1)
    ahead, level = (lead < -TIE_TOLERANCE).sum(axis=1), (np.abs(lead) <= TIE_TOLERANCE).sum(axis=1)
    return np.asarray(ahead + (level + 1) / 2)


def _known(differences: ArrayLike) -> np.ndarray:
    given = np.asarray(differences, float)
    return np.asarray(given[np.isfinite(given)])
