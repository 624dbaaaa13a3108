"""Calibration over time: are the probabilities of the deployed model right in each period?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import chi2

from driftline.auditing.estimate import Estimate
from driftline.auditing.recalibration import LIMITS, fit_binary, recalibrate_binary
from driftline.auditing.score_matrix import Z95
from driftline.auditing.table import AuditTable
from driftline.auditing.wording import PeriodNames
from driftline.types import Answers

BINS = 10
LEVEL = 0.05
MIN_ROWS = 50  # of a period, and 10 of each outcome


@dataclass(frozen=True)
class PeriodCalibration:
    """Calibration of the probabilities in one period."""

    period: str
    n: int
    error: float
    """Expected calibration error, in ten bins with equal numbers of rows."""
    predicted: float
    """Mean probability."""
    observed: float
    """Share of rows in which it came true."""
    intercept: Estimate
    """a of the best a + b * logit(p); 0 if probabilities are right."""
    slope: Estimate
    """b; 1 if probabilities are right, below 1 if they are overconfident."""
    p: float
    """Of a = 0 and b = 1, corrected for the number of periods (Holm)."""

    @property
    def is_off(self) -> bool:
        return self.p <= LEVEL


@dataclass(frozen=True)
class Calibration:
    """Calibration by period, of the probability of a class or of the predicted one."""

    of: str
    """What the probability is of."""
    periods: tuple[PeriodCalibration, ...]

    @property
    def off(self) -> tuple[PeriodCalibration, ...]:
        return tuple(period for period in self.periods if period.is_off)


def measure_calibration(table: AuditTable, answers: Mapping[int, Answers]) -> Calibration | None:
    """Return the calibration of one model in the periods that it predicted; None without class probabilities."""
    known = [k for k in sorted(answers) if answers[k].scores is not None]
    if not table.is_classification or not known or table.frame.labels is None:
        return None
    two = len(table.frame.labels) == 2
    found = []
    for k in known:
        scores, y = np.asarray(answers[k].scores), table.periods[k].y
        top = scores.argmax(axis=1)
        probability, outcome = (scores[:, 1], y == 1) if two else (scores.max(axis=1), y == top)
        if len(y) >= MIN_ROWS and min(outcome.sum(), (~outcome).sum()) >= MIN_ROWS // 5:
            found.append(_measure(table.names[k], probability, outcome.astype(float)))
    if not found:
        return None
    of = f"'{table.frame.labels[1]}'" if two else "the predicted class"
    return Calibration(of, tuple(_corrected(found)))


def _measure(name: str, probability: np.ndarray, outcome: np.ndarray) -> PeriodCalibration:
    n = len(outcome)
    clipped = np.clip(probability, *LIMITS)
    logit = np.log(clipped / (1 - clipped))
    (a,), (b,) = fit_binary(logit, outcome, np.zeros(n, int))
    fitted = recalibrate_binary(logit, a, b)
    weight = fitted * (1 - fitted)
    design = np.stack([np.ones(n), logit])
    covariance = np.linalg.inv(design * weight @ design.T + 1e-9 * np.eye(2))
    errors = Z95 * np.sqrt(np.diag(covariance))
    gain = 2 * float((_log_likelihood(fitted, outcome) - _log_likelihood(clipped, outcome)).sum())
    intercept, slope = (Estimate(float(v), float(v - e), float(v + e), n) for v, e in zip((a, b), errors, strict=True))
    return PeriodCalibration(
        period=name,
        n=n,
        error=expected_error(probability, outcome),
        predicted=float(probability.mean()),
        observed=float(outcome.mean()),
        intercept=intercept,
        slope=slope,
        p=float(chi2.sf(max(gain, 0.0), 2)),
    )


def _log_likelihood(probability: np.ndarray, outcome: np.ndarray) -> np.ndarray:
    return np.asarray(np.log(np.where(outcome > 0, probability, 1 - probability)))


def expected_error(probability: np.ndarray, outcome: np.ndarray) -> float:
    """Return the mean distance of probability and outcome in bins with equal numbers of rows.

    >>> round(expected_error(np.array([0.2, 0.2, 0.8, 0.8]), np.array([0.0, 0.0, 1.0, 1.0])), 3)
    0.2
    """
    order = np.argsort(probability, kind="stable")
    bins = np.array_split(order, min(BINS, len(order)))
    return float(sum(abs((probability[part] - outcome[part]).sum()) for part in bins) / len(order))


def _corrected(periods: list[PeriodCalibration]) -> list[PeriodCalibration]:
    """Return the periods with p-values corrected by Holm's method."""
    order, largest = np.argsort([period.p for period in periods]), 0.0
    result = list(periods)
    for rank, k in enumerate(order):
        largest = max(largest, min(1.0, (len(periods) - rank) * periods[k].p))
        result[k] = replace(periods[k], p=largest)
    return result


def calibration_sentences(calibration: Calibration, names: PeriodNames) -> list[str]:
    """Say whether probabilities are right, and since when and how they are not."""
    off, count = calibration.off, len(calibration.periods)
    if not off:
        return [f"Probabilities of {calibration.of} are not significantly off in any of {count} periods."]
    last, first, at = off[-1], names.within(off[0].period), names.within(off[-1].period)
    way, slope = "too high" if last.predicted > last.observed else "too low", last.slope
    if abs(last.predicted - last.observed) < last.error / 2 and not slope.low <= 1 <= slope.high:
        way = "overconfident" if slope.value < 1 else "underconfident"
    return [
        f"Probabilities of {calibration.of} are significantly off in {len(off)} of {count} periods, first {first}. "
        f"{at[:1].upper()}{at[1:]} they are {way}: {100 * last.predicted:.1f}% on average, and it came true in "
        f"{100 * last.observed:.1f}% (slope {slope.value:.2f} [{slope.low:.2f}, {slope.high:.2f}])."
    ]
