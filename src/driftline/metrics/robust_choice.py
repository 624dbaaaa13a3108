"""Which method to deploy if it is not known which setting comes: ranks, regrets, and how sure a lead is.

Rows are settings (a kind of drift with its data), columns are methods, and larger scores are better. Ranks and tests of
ranks depend on which other methods are listed; regret depends on the best method of a setting alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special, stats

from driftline.metrics.significance import average_ranks, friedman

PRIOR_STRENGTH = 0.5
"""Weight of the imagined setting without a difference in the Bayesian signed-rank test."""


class SignedRank(NamedTuple):
    """Probabilities that the first of two methods is better by more than the rope, equal within it, or worse."""

    better: float
    equal: float
    worse: float


def regrets(scores: ArrayLike) -> np.ndarray:
    """Return by how much each method is below the best one of each setting.

    >>> regrets([[0.9, 0.85], [0.3, 0.6]]).round(2).tolist()
    [[0.0, 0.05], [0.3, 0.0]]
    """
    table = np.asarray(scores, float)
    return np.asarray(table.max(axis=1, keepdims=True) - table)


def mean_ranks(scores: ArrayLike) -> np.ndarray:
    """Return the mean rank of each method over settings; 1 is best, ties share the mean of their ranks.

    >>> mean_ranks([[0.9, 0.8, 0.7], [0.6, 0.8, 0.7]]).tolist()
    [2.0, 1.5, 2.5]
    """
    return np.asarray(np.mean([average_ranks(row) for row in np.asarray(scores, float)], axis=0))


def iman_davenport(scores: ArrayLike) -> tuple[float, float]:
    """Return Iman and Davenport's F of Friedman's chi-squared, F = (N - 1) chi2 / (N (k - 1) - chi2), and its p.

    >>> table = [[0.9, 0.85, 0.7], [0.9, 0.84, 0.7], [0.9, 0.86, 0.7], [0.3, 0.6, 0.7]]
    >>> [round(number, 4) for number in iman_davenport(table)]
    [1.0, 0.4219]
    """
    table = np.asarray(scores, float)
    n, k = table.shape
    chi2 = friedman(table).statistic
    left = n * (k - 1) - chi2
    f = (n - 1) * chi2 / left if left > 0 else np.inf
    return float(f), float(special.fdtrc(k - 1, (k - 1) * (n - 1), f))


def nemenyi_difference(methods: int, settings: int, alpha: float = 0.05) -> float:
    """Return Nemenyi's critical difference of two mean ranks: q sqrt(k (k + 1) / (6 N)).

    >>> round(nemenyi_difference(3, 4), 2)
    1.66
    """
    q = stats.studentized_range.ppf(1 - alpha, methods, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(methods * (methods + 1) / (6 * settings)))


def wilcoxon_p(differences: ArrayLike) -> float:
    """Return the exact two-sided p-value of Wilcoxon's signed-rank test; differences of 0 count for neither side.

    >>> wilcoxon_p([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    0.03125
    """
    known = np.asarray(differences, float)
    known = known[known != 0]
    if not len(known):
        return 1.0
    method = stats.PermutationMethod() if len(known) <= 12 else "auto"
    return float(stats.wilcoxon(known, method=method, correction=len(known) > 12).pvalue)


def bayesian_signed_rank(
    first: ArrayLike, second: ArrayLike, rope: float, rng: np.random.Generator, draws: int = 50_000
) -> SignedRank:
    """Return the result of the Bayesian signed-rank test of two methods over settings (Benavoli et al., ICML 2014).

    Settings have weights w ~ Dirichlet(1/2, 1, ..., 1), the first for an imagined setting without a difference. Of the
    pairs of settings, weighted by w_i w_j, those whose mean difference is above the rope count for the first method.
    A probability is the share of draws in which a side has the largest weight.
    """
    difference = np.concatenate([[0.0], np.asarray(first, float) - np.asarray(second, float)])
    sums = difference[:, np.newaxis] + difference
    above, below = (sums > 2 * rope).astype(float), (sums < -2 * rope).astype(float)
    weights = rng.dirichlet([PRIOR_STRENGTH, *np.ones(len(difference) - 1)], size=draws)
    better = np.einsum("di,ij,dj->d", weights, above, weights, optimize=True)
    worse = np.einsum("di,ij,dj->d", weights, below, weights, optimize=True)
    largest = np.stack([better, 1 - better - worse, worse]).argmax(axis=0)
    return SignedRank(*(np.bincount(largest, minlength=3) / draws).tolist())


def resampled_seeds(scores: ArrayLike, draws: int, rng: np.random.Generator) -> np.ndarray:
    """Return the table of means of each draw of seeds, with settings fixed; `scores` are settings x methods x seeds.

    Seeds are drawn together for all methods of a setting, because they share its stream.
    """
    table = np.asarray(scores, float)
    n_settings, _, n_seeds = table.shape
    chosen = rng.integers(0, n_seeds, (draws, n_settings, n_seeds))
    rows = np.arange(n_settings)[:, np.newaxis]
    return np.stack([table[rows, :, of].mean(axis=1) for of in chosen])
