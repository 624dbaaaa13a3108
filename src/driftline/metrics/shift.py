"""What changed between two samples of a table: inputs (covariate shift), or errors at equal inputs (conditional).

Effect sizes come first: with many rows every difference is significant, and few of them matter.
For images there are distances of transport: `wasserstein2`, `covariate_shift`, `conditional_shift`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special, stats

from driftline.metrics.confidence import MAX_RESAMPLED_AT_ONCE, percentile_interval
from driftline.metrics.wasserstein import conditional_shift as conditional_shift
from driftline.metrics.wasserstein import covariate_shift as covariate_shift
from driftline.metrics.wasserstein import wasserstein2 as wasserstein2

DECILES = 10
MIN_ROWS = 10  # of a bin on each side, in `error_change_by_feature`
PSI_FLOOR = 1e-4  # an empty bin counts as this share in PSI, as is usual


class Distance(NamedTuple):
    """How far apart two samples of one feature are."""

    effect: float
    """0: the same, 1: nothing in common."""
    p: float
    psi: float


def ks_distance(before: ArrayLike, after: ArrayLike) -> Distance:
    """Return the Kolmogorov-Smirnov distance max |F - G|, its asymptotic p-value, and PSI over deciles.

    A missing value counts as a value below all others. Lower is more similar.

    >>> ks_distance([1, 2, 3, 4], [3, 4, 5, 6]).effect
    0.5
    """
    one, other = (np.nan_to_num(np.asarray(x, float), nan=-np.inf) for x in (before, after))
    if not len(one) or not len(other):
        return Distance(np.nan, np.nan, np.nan)
    where = np.sort(np.concatenate([one, other]))
    one, other = np.sort(one), np.sort(other)
    cdf = [np.searchsorted(x, where, side="right") / len(x) for x in (one, other)]
    effect = float(np.abs(cdf[0] - cdf[1]).max())
    size = len(one) * len(other) / (len(one) + len(other))
    p = float(special.kolmogorov(np.sqrt(size) * effect))
    edges = np.unique(np.quantile(one, np.arange(1, DECILES) / DECILES, method="inverted_cdf"))
    counts = [np.bincount(np.searchsorted(edges, x), minlength=len(edges) + 1) for x in (one, other)]
    return Distance(effect, p, psi(*counts))


def total_variation(before: ArrayLike, after: ArrayLike) -> Distance:
    """Return the total variation 1/2 sum |p - q| of two count vectors, its chi-squared p-value, and PSI.

    >>> round(total_variation([50, 50, 0], [25, 50, 25]).effect, 6)
    0.25
    """
    one, other = np.asarray(before, float), np.asarray(after, float)
    if not one.sum() or not other.sum():
        return Distance(np.nan, np.nan, np.nan)
    effect = float(np.abs(one / one.sum() - other / other.sum()).sum() / 2)
    met = (one + other) > 0
    p = float(stats.chi2_contingency([one[met], other[met]]).pvalue) if met.sum() > 1 else 1.0
    return Distance(effect, p, psi(one, other))


def psi(before: ArrayLike, after: ArrayLike) -> float:
    """Return the population stability index sum (q - p) ln(q / p) of two count vectors; a shift is above 0.2.

    >>> round(psi([50, 50], [25, 75]), 4)
    0.2747
    """
    p, q = (np.maximum(np.asarray(x, float) / max(1.0, np.sum(x)), PSI_FLOOR) for x in (before, after))
    return float(((q - p) * np.log(q / p)).sum())


def benjamini_hochberg(p: ArrayLike) -> np.ndarray:
    """Return p-values adjusted for multiple tests (false discovery rate); NaN stays NaN.

    >>> benjamini_hochberg([0.01, 0.04, 0.03]).round(4).tolist()
    [0.03, 0.04, 0.04]
    """
    p = np.asarray(p, float)
    adjusted = np.full(p.shape, np.nan)
    known = np.flatnonzero(~np.isnan(p.ravel()))
    order = known[np.argsort(p.ravel()[known])]
    raised = p.ravel()[order] * len(order) / np.arange(1, len(order) + 1)
    adjusted.ravel()[order] = np.minimum(1, np.minimum.accumulate(raised[::-1])[::-1])
    return adjusted


class AUC(NamedTuple):
    """Separation of two samples by a classifier, 0.5 for none and 1 for perfect, with a 95 % interval."""

    value: float
    low: float
    high: float


def auc(before: ArrayLike, after: ArrayLike) -> AUC:
    """Return the AUC of scores that should be higher `after`, with the interval of Hanley and McNeil (1982).

    >>> round(auc([0.1, 0.4], [0.35, 0.8]).value, 6)
    0.75
    """
    one, other = np.asarray(before, float), np.asarray(after, float)
    ranks = stats.rankdata(np.concatenate([one, other]))
    n, m = len(one), len(other)
    a = float((ranks[n:].sum() - m * (m + 1) / 2) / (n * m))
    q1, q2 = a / (2 - a), 2 * a * a / (1 + a)
    spread = np.sqrt(max(0.0, a * (1 - a) + (m - 1) * (q1 - a * a) + (n - 1) * (q2 - a * a)) / (n * m))
    half = special.ndtri(0.975) * spread
    return AUC(a, max(0.0, a - half), min(1.0, a + half))


class PerformanceGap(NamedTuple):
    """A loss of quality in two parts, each as (value, low, high); total = covariate + conditional."""

    total: tuple[float, float, float]
    covariate: tuple[float, float, float]
    conditional: tuple[float, float, float]
    effective_sample_size: float
    """How many of the earlier rows the reweighting rests on: (sum w)^2 / sum w^2."""


def performance_gap(
    right_before: ArrayLike, weights: ArrayLike, right_after: ArrayLike, resamples: int, rng: np.random.Generator
) -> PerformanceGap:
    """Split a model's loss into a part due to other inputs and a part at equal inputs.

    `weights` are q(x) / p(x), how much more frequent each earlier row would be later. With accuracies R, of one model:

        total       = R(before) - R(after)
        covariate   = R(before) - R_w(before)     what the new mix of inputs alone would have cost
        conditional = R_w(before) - R(after)      what it costs that the same inputs now have other answers

    where R_w(before) = sum w right / sum w. Higher is worse. Intervals: 95 % bootstrap over rows.
    """
    right, w, after = (np.asarray(x, float) for x in (right_before, weights, right_after))
    parts = []
    for start in range(0, resamples, max(1, MAX_RESAMPLED_AT_ONCE // max(1, len(right) + len(after)))):
        size = min(max(1, MAX_RESAMPLED_AT_ONCE // max(1, len(right) + len(after))), resamples - start)
        one, other = (rng.multinomial(len(x), np.full(len(x), 1 / len(x)), size).astype(float) for x in (right, after))
        parts.append(np.stack([one @ right / len(right), (one @ (w * right)) / (one @ w), other @ after / len(after)]))
    plain = np.array([right.mean(), (w * right).sum() / w.sum(), after.mean()])
    drawn = np.concatenate(parts, axis=1)
    made = []
    for one_, other_ in ((0, 2), (0, 1), (1, 2)):
        low, high = percentile_interval(drawn[one_] - drawn[other_])
        made.append((float(plain[one_] - plain[other_]), float(low), float(high)))
    return PerformanceGap(made[0], made[1], made[2], effective_sample_size=float(w.sum() ** 2 / (w**2).sum()))


class ErrorChange(NamedTuple):
    """How differently the error changed over the values of one feature."""

    spread: float
    """Standard deviation over the feature's values of the change in error, noise taken out. 0: the same everywhere."""
    p: float
    worst: int
    """The bin in which the error rose most; -1 if no bin has enough rows."""


def error_change_by_feature(
    right_before: ArrayLike, bins_before: ArrayLike, right_after: ArrayLike, bins_after: ArrayLike
) -> ErrorChange:
    """Return how unevenly the error changed over the values of a feature.

    Per bin b of the feature, D_b = error after - error before, with variance v_b. The spread is
    sqrt(max(0, sum_b s_b ((D_b - D)^2 - v_b))), s_b the share of rows after and D the precision-weighted mean; p is
    that of Q = sum_b (D_b - D)^2 / v_b under chi-squared. Bins with fewer than 10 rows on a side are left out.
    """
    wrong = [1 - np.asarray(x, float) for x in (right_before, right_after)]
    bins = [np.asarray(x, int) for x in (bins_before, bins_after)]
    size = 1 + max(int(b.max(initial=0)) for b in bins)
    n = np.array([np.bincount(b, minlength=size) for b in bins], float)
    s, s2 = (np.array([np.bincount(b, x**k, minlength=size) for b, x in zip(bins, wrong, strict=True)]) for k in (1, 2))
    use = (n >= MIN_ROWS).all(axis=0)
    if use.sum() < 2:
        return ErrorChange(np.nan, np.nan, -1)
    n, s, s2 = n[:, use], s[:, use], s2[:, use]
    mean = (s + 0.5) / (n + 1)  # one half of an error more: a bin without errors is not without doubt
    varied = s2 / n - (s / n) ** 2
    variance = (np.where(varied > 0, varied, np.maximum(mean * (1 - mean), 1e-12)) / n).sum(axis=0)
    change = s[1] / n[1] - s[0] / n[0]
    center = (change / variance).sum() / (1 / variance).sum()
    share = n[1] / n[1].sum()
    spread = np.sqrt(max(0.0, float((share * ((change - center) ** 2 - variance)).sum())))
    p = float(special.chdtrc(len(change) - 1, float(((change - center) ** 2 / variance).sum())))
    return ErrorChange(spread, p, int(np.flatnonzero(use)[change.argmax()]))
