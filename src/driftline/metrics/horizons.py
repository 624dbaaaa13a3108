"""How many periods a model lasts: stability and drift horizon, with an allowance for noise, false alarms and intervals.

Both horizons end at the first of many noisy comparisons, so without an allowance they end by chance: with 44 held-out
examples per period most models "drift" in a world in which nothing changes (docs/timeline.md has the numbers).
The paper has no allowance; `allowance=0` is its definition. Otherwise a difference counts only beyond `allowance`
standard errors (`driftline.metrics.confidence.standard_errors`), which vanish as test examples become many.

A gap inside the future makes a DH NaN, unless `partial=True`; SH stops before it (censored: a lower bound) or skips it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial as fix
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from driftline.errors import UserError
from driftline.metrics import metric
from driftline.metrics.confidence import Interval
from driftline.metrics.per_period import (
    PAPER,
    TOLERANCE,
    Horizon,
    accuracies,
    check_choice,
    check_positive,
    diagonal,
    example_maker,
    last_true,
    rows_by_age,
    transfer_ratio,
    usable_steps,
)

N_NULL_SIMULATIONS = 200  # worlds without drift that a false-alarm rate is taken over


@metric(
    "sh",
    title="periods valid (SH)",
    formula="SH(t) = max{h >= 0 : A[t,t+k] >= delta A[t+k,t+k] - allowance * its standard error for k = 1..h}",
    unit="steps",
    paper=PAPER,
    example=example_maker(delta=0.8, error=0.02, allowance=1.96),
)
def stability_horizon(
    A: ArrayLike,
    delta: float,
    gaps: Literal["stop", "skip"] = "stop",
    error: ArrayLike = 0.0,
    allowance: float = 0.0,
) -> Horizon:
    """Return the stability horizon: for how many periods the model of t keeps a share `delta` of the oracle.

    SH(t) = max{h : g(t,t+1), ..., g(t,t+h) all >= delta}: the steps before the first dip, or before the first
    period without a g. `gaps="skip"` is the paper's formula to the letter, max{h : g(t,t+h) >= delta}, which
    jumps over both. Higher is better. A row that never drops has its available steps, censored. A row
    of which no future step can be checked, such as the last, is 0, censored, and not counted in the mean.

    With the standard errors `error` of A, a dip is A[t,tau] - delta A[tau,tau] < -allowance * standard error.

    >>> A = [[0.80, 0.72, 0.45, 0.60], [0, 0.75, 0.66, 0.63], [0, 0, 0.60, 0.80], [0, 0, 0, 0.70]]
    >>> stability_horizon(A, delta=0.8).values, stability_horizon(A, delta=0.8, gaps="skip").values
    (array([1., 2., 1., 0.]), array([3., 2., 1., 0.]))
    >>> stability_horizon(A, delta=0.8, error=0.02, allowance=2).values  # 0.45 is 0.03 short of 0.8 * 0.60
    array([3., 2., 1., 0.])
    """
    A = accuracies(A)
    check_choice("gaps", gaps, ("stop", "skip"))
    _fraction("delta", delta, 1)
    oracle, errors = diagonal(A), _errors(error, A)
    noise = allowance * np.hypot(errors, delta * diagonal(errors))
    room = np.divide(noise, oracle, out=np.zeros(A.shape), where=oracle > TOLERANCE)
    g = rows_by_age(transfer_ratio(A))[..., 1:]
    checked, kept = ~np.isnan(g), g >= delta - rows_by_age(room)[..., 1:] - TOLERANCE
    if gaps == "stop":
        checked, kept = (np.logical_and.accumulate(mask, axis=-1) for mask in (checked, kept))
    steps, available = last_true(kept), last_true(checked)
    exists = ~np.isnan(rows_by_age(A)).all(axis=-1)
    values = np.where(exists, steps, np.nan)
    return Horizon(values, censored=exists & (steps == available), counted=available > 0)


@metric(
    "dh",
    title="periods to drift (DH)",
    formula="DH(t) = min{h : S_h > threshold}, else horizon + 1; S_h = max(0, S_{h-1} + |A[t,t+h] - A[t,t]| - epsilon "
    "- allowance * its standard error)",
    unit="steps",
    paper=PAPER,
    example=example_maker(epsilon=0.02, threshold=0.15, horizon=3, error=0.02, allowance=1.96),
)
def drift_horizon(
    A: ArrayLike,
    epsilon: float,
    threshold: float,
    horizon: int,
    direction: Literal["both", "drop"] = "both",
    partial: bool = False,
    error: ArrayLike = 0.0,
    allowance: float = 0.0,
) -> Horizon:
    """Return the drift horizon: the first period at which a CUSUM of the change in accuracy raises the alarm.

    S_h = max(0, S_{h-1} + |A[t,t+h] - A[t,t]| - epsilon), DH(t) = min{h <= horizon : S_h > threshold}.
    Higher is better: drift comes later. It knows no oracle, so harder data count as drift, and so do
    improvements, unless `direction="drop"`: Page's one-sided test, with A[t,t] - A[t,t+h] for the absolute
    value, so that a gain pays back earlier losses. The paper does not state its epsilon, hence no default.
    With the standard errors `error` of A, `allowance` standard errors of each difference are added to epsilon.

    Never crossed: NaN, censored, and `horizon + 1` in `paper` and the summaries. Rows without A[t,t] or any
    of the `horizon` steps are left out; with `partial=True` a missing step leaves S as it is.

    >>> result = drift_horizon([[0.9, 0.7], [np.nan, 0.9]], epsilon=0.0, threshold=0.15, horizon=1)
    >>> result.values, float(result.mean)
    (array([ 1., nan]), 1.0)
    """
    check_choice("direction", direction, ("both", "drop"))
    _fraction("epsilon", epsilon, 1)
    check_positive("horizon", horizon)
    _fraction("threshold", threshold, horizon)
    A = accuracies(A)
    rows, errors = rows_by_age(A), rows_by_age(_errors(error, A))
    change = rows[..., :1] - rows[..., 1:]
    change = np.abs(change) if direction == "both" else change
    noise = epsilon + allowance * np.hypot(errors[..., 1:], errors[..., :1])
    use, counted = usable_steps(~np.isnan(change), horizon, partial)
    total, first = np.zeros(counted.shape), np.full(counted.shape, np.nan)
    for h in range(change.shape[-1]):
        total = np.where(use[..., h], np.maximum(0, total + change[..., h] - noise[..., h]), total)
        first = np.where(np.isnan(first) & (total > threshold + TOLERANCE), h + 1, first)
    values = np.where(counted, first, np.nan)
    return Horizon(values, censored=counted & np.isnan(values), counted=counted, sentinel=horizon + 1)


@dataclass(frozen=True)
class HorizonBounds:
    """Intervals of a horizon: of each model, and of the mean and the minimum over models."""

    per_model: Interval
    mean: Interval
    minimum: Interval


def horizon_bounds(compute: Callable[..., Horizon], A: ArrayLike, error: ArrayLike) -> HorizonBounds:
    """Return 95 % intervals of the horizon of the true accuracies, from the measured ones and their standard errors.

    A horizon grows with the allowance. Moving the allowance z standard errors down and up gives its ends, z being the
    normal quantile. For the summaries z is Bonferroni's for all models, so that the ends hold for all of them together.
    The interval of a horizon with an allowance is the same: it is about the true accuracies, which need none.

    >>> lasting = fix(stability_horizon, delta=0.9)
    >>> found = horizon_bounds(lasting, [[0.9, 0.86, 0.7], [np.nan, 0.9, 0.9], [np.nan, np.nan, 0.9]], error=0.02)
    >>> found.per_model.low, found.per_model.high, found.mean
    (array([0., 1., 0.]), array([1., 1., 0.]), Interval(low=0.5, high=1.0))
    """
    models = max(1, int(compute(A).counted.sum()))
    one, all_of_them = (float(special.ndtri(1 - (1 - 0.95) / 2 / count)) for count in (1, models))
    low, high = (compute(A, error=error, allowance=side * one) for side in (-1, 1))
    lowest, highest = (compute(A, error=error, allowance=side * all_of_them) for side in (-1, 1))
    summaries = (Interval(float(getattr(lowest, stat)), float(getattr(highest, stat))) for stat in ("mean", "minimum"))
    return HorizonBounds(Interval(low.paper, high.paper), *summaries)


def false_alarm_rate(compute: Callable[..., Horizon], A: ArrayLike, error: ArrayLike) -> float:
    """Return the share of models whose horizon would end within the data if nothing ever changed.

    In each of 200 such worlds every model is right in mean_t A[t,t] of cases at all times, and each A[t,tau] that was
    measured differs from that by normal noise with its standard error. `compute` is the horizon with all settings.

    >>> drifts = fix(drift_horizon, epsilon=0.0, threshold=0.15, horizon=2)
    >>> A = np.triu(np.full((4, 4), 0.8))
    >>> false_alarm_rate(drifts, A, 0.001), false_alarm_rate(drifts, A, 0.05)
    (0.0, 0.2425)
    """
    A = accuracies(A)
    errors = np.where(np.isnan(A), np.nan, _errors(error, A))
    level = np.nanmean(np.diagonal(A)) if np.isfinite(np.diagonal(A)).any() else np.nan
    noise = np.random.default_rng(0).standard_normal((N_NULL_SIMULATIONS, *A.shape)) * errors
    found = compute(np.clip(level + noise, 0, 1))
    counted = found.counted.sum()
    return float((found.counted & ~found.censored).sum() / counted) if counted else float("nan")


def _errors(error: ArrayLike, A: np.ndarray) -> np.ndarray:
    return np.broadcast_to(np.asarray(error, dtype=float), A.shape)


def _fraction(what: str, value: float, largest: float) -> None:
    if not 0 <= value <= largest:
        raise UserError(f"{what} must be a fraction from 0 to {largest}, not {value}")


def _variant(name: str, formula: str, compute: Callable[..., object], **settings: object) -> None:
    metric(name, formula=formula, unit="steps", paper=PAPER, example=example_maker(**settings))(compute)


_DRIFT = {"epsilon": 0.02, "threshold": 0.15, "horizon": 3}
_CUSUM = "DH(t) = min{h : S_h > threshold}, else horizon + 1; S_h = max(0, S_{h-1} + "
_variant("sh-paper", "SH(t) = max{h >= 0 : g(t,t+1), ..., g(t,t+h) all >= delta}", stability_horizon, delta=0.8)
_variant("sh-skip", "SH(t) = max{h >= 0 : g(t,t+h) >= delta}", fix(stability_horizon, gaps="skip"), delta=0.8)
_variant("dh-paper", f"{_CUSUM}|A[t,t+h] - A[t,t]| - epsilon)", drift_horizon, **_DRIFT)
_variant(
    "dh-drop",
    f"{_CUSUM}A[t,t] - A[t,t+h] - epsilon - allowance * its standard error)",
    fix(drift_horizon, direction="drop"),
    **_DRIFT,
)
