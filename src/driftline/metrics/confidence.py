"""Confidence intervals: bootstrap over examples, t-interval over seeds, and Wilson's interval of a proportion.

The bootstrap stays inside a period. Whatever a resample does to the examples of period tau it does to all
models evaluated on them, because they share the evaluation set; and it draws held-out and other examples
separately, so that the diagonal, which uses only the held-out ones, keeps its n.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from driftline.errors import UserError
from driftline.types import Score

MAX_RESAMPLED_AT_ONCE = 2_000_000  # resampled examples held in memory at once


class Interval(NamedTuple):
    """Two ends of a confidence interval, numbers or arrays."""

    low: Score
    high: Score


@dataclass(frozen=True, eq=False)
class PeriodAnswers:
    """Which models got which of the n examples of one period tau right: 1 or true, 0 or false, NaN for not evaluated.

    `later` has a row per model t = 0..tau-1, evaluated later than it was trained, on all examples; `own` is
    the model of tau itself, NaN where an example was not held out from its training.

    >>> PeriodAnswers(later=[[1, 0, 1, 1]], own=[np.nan, np.nan, 1, 0]).scores
    array([[ 1.,  0.,  1.,  1.],
           [nan, nan,  1.,  0.]])
    """

    later: np.ndarray
    own: np.ndarray

    def __post_init__(self) -> None:
        later, own = np.asarray(self.later), np.asarray(self.own)
        if own.ndim != 1 or (later.size and (later.ndim != 2 or later.shape[1] != len(own))):
            shapes = f"{later.shape} and {own.shape}"
            raise UserError(f"a column needs 'later' (models x examples) and 'own' (examples), not {shapes}")
        later = later if later.ndim == 2 and later.shape[1] == len(own) else np.zeros((0, len(own)))
        object.__setattr__(self, "later", later)
        object.__setattr__(self, "own", own)
        if (self.scores > 1).any():
            raise UserError("the score of an example is at most 1 (right), 0 if wrong, or NaN where not evaluated")

    @property
    def scores(self) -> np.ndarray:
        """All models on all examples, (tau + 1) x n; the model of tau comes last."""
        return np.vstack([self.later, self.own]).astype(float)


def accuracy_matrix(columns: Sequence[PeriodAnswers]) -> tuple[np.ndarray, np.ndarray]:
    """Return A[t,tau] = mean correctness of the model of t in period tau, and the counts n[t,tau].

    >>> A, n = accuracy_matrix([PeriodAnswers([], [1, np.nan]), PeriodAnswers([[1, 0, 1, 1]], [np.nan, np.nan, 1, 0])])
    >>> A, n
    (array([[1.  , 0.75],
           [ nan, 0.5 ]]), array([[1, 4],
           [0, 2]]))
    """
    A = np.full((len(columns), len(columns)), np.nan)
    n = np.zeros(A.shape, dtype=int)
    for tau, column in enumerate(_in_order(columns)):
        right, evaluated = _counts(column)
        n[: tau + 1, tau] = evaluated.sum(axis=0)
        A[: tau + 1, tau] = _share(right.sum(axis=0), n[: tau + 1, tau])
    return A, n


def standard_errors(columns: Sequence[PeriodAnswers]) -> np.ndarray:
    """Return the standard errors of `accuracy_matrix`, never 0 where a model was evaluated.

    >>> standard_errors([PeriodAnswers([], np.ones(40))]).round(3)
    array([[0.033]])
    """
    errors = np.full((len(columns), len(columns)), np.nan)
    for tau, column in enumerate(_in_order(columns)):
        errors[: tau + 1, tau] = standard_error(*_counts(column))
    return errors


def standard_error(right: np.ndarray, evaluated: np.ndarray) -> np.ndarray:
    """Return the standard error of the share of right answers, over examples along the first axis; NaN for none.

    sqrt(variance / n), the variance taken with two right and two wrong answers more, as Agresti and Coull do: 40 right
    answers of 40 do not make the next one certain.
    """
    n = evaluated.sum(axis=0)
    mean, square = ((part.sum(axis=0) + 2) / (n + 4) for part in (right, right**2))
    return np.asarray(np.where(n > 0, np.sqrt((square - mean**2) / np.maximum(n, 1)), np.nan))


def bootstrap_matrices(columns: Sequence[PeriodAnswers], resamples: int, rng: np.random.Generator) -> np.ndarray:
    """Return accuracy matrices (draws, T, T) of examples resampled with replacement within each period.

    The diagonal has few examples. If all of them happen to be right, resampling shows no noise at all; normal noise
    is added to its draws until their spread is that of `standard_errors`.

    Feed them to any metric of `driftline.metrics.temporal`, and its results to `percentile_interval`.

    >>> column = PeriodAnswers(later=[[1, 1, 0, 0]], own=[np.nan, np.nan, 1, 1])
    >>> A = bootstrap_matrices([PeriodAnswers([], [1.0]), column], resamples=100, rng=np.random.default_rng(0))
    >>> A.shape, A[:, 1, 1].min().item() < 1, A[:, 0, 1].std().item() > 0
    ((100, 2, 2), True, False)
    """
    if resamples < 1:
        raise UserError(f"a bootstrap needs at least one draw, not {resamples}")
    A = np.full((resamples, len(columns), len(columns)), np.nan)
    for tau, column in enumerate(_in_order(columns)):
        right, evaluated = _counts(column)
        held_out = ~np.isnan(column.own.astype(float))
        chunk = max(1, MAX_RESAMPLED_AT_ONCE // max(1, len(held_out)))
        for start in range(0, resamples, chunk):
            weights = _weights(held_out, min(chunk, resamples - start), rng)
            A[start : start + chunk, : tau + 1, tau] = _share(weights @ right, weights @ evaluated)
        own = A[:, tau, tau] + rng.standard_normal(resamples) * _missing_std(right[:, -1], evaluated[:, -1])
        A[:, tau, tau] = np.clip(own, right.min(initial=0), 1)
    return A


def bootstrap_means(values: ArrayLike, resamples: int, rng: np.random.Generator) -> np.ndarray:
    """Return means (draws, ...) of values (n, ...) resampled with replacement along the first axis.

    >>> bootstrap_means([1.0, 1.0, 1.0], resamples=2, rng=np.random.default_rng(0)).tolist()
    [1.0, 1.0]
    """
    values = np.asarray(values, dtype=float)
    chunk = max(1, MAX_RESAMPLED_AT_ONCE // max(1, len(values)))
    sizes = [min(chunk, resamples - start) for start in range(0, resamples, chunk)]
    parts = [_weights(np.ones(len(values), bool), size, rng) @ values / max(1, len(values)) for size in sizes]
    return np.concatenate(parts)


def percentile_interval(resamples: ArrayLike, level: float = 0.95, axis: int = 0) -> Interval:
    """Return the middle `level` of the draws along `axis`; NaN draws are left out, only NaN gives NaN.

    >>> low, high = percentile_interval(np.arange(101.0), level=0.9)
    >>> low.round(6).item(), high.round(6).item()
    (5.0, 95.0)
    """
    _check(level)
    resamples = np.asarray(resamples, dtype=float)
    known = ~np.isnan(resamples).all(axis=axis)
    # an all-NaN slice would warn, so it is ranked as zeros and blanked again
    ranked = np.where(np.expand_dims(known, axis), resamples, 0.0)
    quantile = np.nanquantile if np.isnan(ranked).any() else np.quantile  # the same ends, sooner
    ends = quantile(ranked, [(1 - level) / 2, (1 + level) / 2], axis=axis)
    low, high = np.where(known, ends, np.nan)
    return Interval(low[()], high[()])


def t_interval_over_seeds(values: ArrayLike, level: float = 0.95) -> Interval:
    """Return the t-interval of the mean over seeds (first axis): mean -+ t(level, k-1) * s / sqrt(k) for k seeds.

    Assumes seeds that differ as draws of a normal; NaN seeds are left out, fewer than two give NaN.

    >>> low, high = t_interval_over_seeds([0.80, 0.82, 0.84])
    >>> round(float(low), 4), round(float(high), 4)
    (0.7703, 0.8697)
    """
    _check(level)
    values = np.asarray(values, dtype=float)
    known = ~np.isnan(values)
    k = known.sum(axis=0)
    enough = np.maximum(k, 2)
    center = np.where(known, values, 0).sum(axis=0) / enough
    spread = np.sqrt((np.where(known, values - center, 0) ** 2).sum(axis=0) / (enough - 1))
    half = special.stdtrit(enough - 1, (1 + level) / 2) * spread / np.sqrt(enough)
    return Interval(*(np.where(k >= 2, end, np.nan)[()] for end in (center - half, center + half)))


def wilson(successes: ArrayLike, n: ArrayLike, level: float = 0.95) -> Interval:
    """Return Wilson's score interval of a proportion, which is also valid near 0 and 1; NaN for n = 0.

    (p + z^2/2n -+ z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n), p = successes / n, z the normal quantile.

    >>> low, high = wilson(10, 10)
    >>> round(float(low), 4), round(float(high), 4)
    (0.7225, 1.0)
    """
    _check(level)
    right, trials = np.asarray(successes, dtype=float), np.asarray(n, dtype=float)
    if ((right < 0) | (right > trials)).any():
        raise UserError("a proportion needs 0 <= successes <= n")
    p, trials = _share(right, trials), np.maximum(trials, 1)
    z = special.ndtri((1 + level) / 2)
    half = z * np.sqrt(p * (1 - p) / trials + (z / trials) ** 2 / 4)
    ends = [(p + z**2 / (2 * trials) + side * half) / (1 + z**2 / trials) for side in (-1, 1)]
    return Interval(*(np.clip(end, 0, 1)[()] for end in ends))


def mean_interval(values: ArrayLike, resamples: ArrayLike) -> Interval:
    """Return the interval of a mean: Wilson's if all values are 0 or 1, else the middle 95 % of its resamples.

    >>> low, high = mean_interval([1.0, 1.0, 1.0], resamples=[1.0, 1.0])
    >>> round(float(low), 3), float(high)
    (0.439, 1.0)
    """
    values = np.asarray(values, dtype=float)
    return wilson(values.sum(), len(values)) if np.isin(values, (0, 1)).all() else percentile_interval(resamples)


def are_proportions(columns: Sequence[PeriodAnswers]) -> bool:
    """Return whether every answer is right or wrong, so that each accuracy is a proportion.

    >>> are_proportions([PeriodAnswers([], [1.0, np.nan, 0.0])]), are_proportions([PeriodAnswers([], [0.5])])
    (True, False)
    """
    return all(np.isin(scores[~np.isnan(scores)], (0, 1)).all() for scores in (column.scores for column in columns))


def _in_order(columns: Sequence[PeriodAnswers]) -> Sequence[PeriodAnswers]:
    if not columns:
        raise UserError("no columns: give one per period, in time order")
    for tau, column in enumerate(columns):
        if len(column.later) != tau:
            raise UserError(f"period {tau} must have answers of {tau} earlier models, not {len(column.later)}")
    return columns


def _counts(column: PeriodAnswers) -> tuple[np.ndarray, np.ndarray]:
    """Return correct answers and evaluations, both n x models."""
    scores = column.scores.T
    return np.nan_to_num(scores), (~np.isnan(scores)).astype(float)


def _missing_std(right: np.ndarray, evaluated: np.ndarray) -> np.ndarray:
    """Return the standard deviation that resampled means lack to have the standard error."""
    n = np.maximum(1, evaluated.sum())
    resampled = ((right**2).sum() / n - (right.sum() / n) ** 2) / n
    return np.asarray(np.sqrt(np.maximum(0, standard_error(right, evaluated) ** 2 - resampled)))


def _weights(held_out: np.ndarray, resamples: int, rng: np.random.Generator) -> np.ndarray:
    """Return how often each example is drawn, draws x n: multinomial within the held-out ones and the rest."""
    weights = np.zeros((resamples, len(held_out)))
    for stratum in (np.flatnonzero(held_out), np.flatnonzero(~held_out)):
        size = len(stratum)
        if size:
            # counting uniform picks is a multinomial draw, several times faster than rng.multinomial
            picks = rng.integers(size, size=(resamples, size)) + size * np.arange(resamples)[:, None]
            weights[:, stratum] = np.bincount(picks.ravel(), minlength=resamples * size).reshape(resamples, size)
    return weights


def _share(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    return np.where(whole > 0, part / np.maximum(whole, 1), np.nan)


def _check(level: float) -> None:
    if not 0 < level < 1:
        raise UserError(f"level is a probability between 0 and 1, such as 0.95, not {level}")
