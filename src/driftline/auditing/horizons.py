"""How long models last, as survival: Kaplan-Meier over models, compared with permuted periods and with no aging."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from driftline.auditing.estimate import Estimate
from driftline.auditing.score_matrix import ScoreMatrix
from driftline.metrics.confidence import percentile_interval

EPSILON, THRESHOLD = 0.01, 0.15  # of the drift horizon
DRAWS = 199
NEVER = 0  # event age of a model without an event
Events = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Horizon(Estimate):
    """Mean age of models before an event, within `limit` periods. `n`: number of models."""

    limit: int = 0
    events: int = 0
    """Models with an event within the limit."""
    median: int | None = None
    """Age at which half of the models have had the event; None: not seen within the limit."""
    survival: tuple[float, ...] = ()
    """Share of models without an event after 1, 2, ... periods."""
    permuted: float = np.nan
    """The same mean in permuted periods, on average."""
    p: float = np.nan
    """Share of permutations that last as long."""
    no_aging: tuple[float, float] = (np.nan, np.nan)
    """Range of the same mean if every model were as good as a new one, from noise alone (95 %)."""

    @property
    def depends_on_order(self) -> bool:
        """Whether models last longer in the true order than in permuted periods."""
        return self.p <= 0.05


@dataclass(frozen=True)
class AgeCurve:
    """Score of old models as a share of that of new ones, by age."""

    by_age: tuple[Estimate, ...]
    horizon: int | None
    """The first age at which the interval lies below delta; None: not within half of the time."""


def stability_events(A: np.ndarray, delta: float) -> np.ndarray:
    """Return the age at which each model first falls below `delta` of a new one; 0: never. A: (..., T, T)."""
    fresh = np.diagonal(A, axis1=-2, axis2=-1)[..., None, :]
    ratio = np.divide(A, fresh, out=np.ones_like(A), where=fresh > 1e-9)
    return _first_age(np.triu(ratio < delta, 1))


def drift_events(A: np.ndarray) -> np.ndarray:
    """Return the age at which the accumulated drops below a model's own period first exceed 0.15; 0: never."""
    drops = np.diagonal(A, axis1=-2, axis2=-1)[..., None] - A - EPSILON
    crossed = np.zeros(A.shape, bool)
    total = np.zeros(A.shape[:-1])
    for age in range(1, A.shape[-1]):
        model = np.arange(A.shape[-1] - age)
        total[..., model] = np.maximum(0, total[..., model] + drops[..., model, model + age])
        crossed[..., model, model + age] = total[..., model] > THRESHOLD
    return _first_age(crossed)


def _first_age(crossed: np.ndarray) -> np.ndarray:
    first = crossed.argmax(axis=-1) - np.arange(crossed.shape[-1])
    return np.where(crossed.any(axis=-1), first, NEVER)


def survival(events: np.ndarray, limit: int) -> np.ndarray:
    """Return the Kaplan-Meier share of models without an event after 1, 2, ..., `limit` periods.

    `events`: (..., T); model t of T is seen for T - 1 - t periods.

    >>> survival(np.array([1, 0, 2, 0]), limit=2).round(4).tolist()  # at age 2 one model is at risk, and has no event
    [0.6667, 0.6667]
    """
    seen = events.shape[-1] - 1 - np.arange(events.shape[-1])
    shares, share = [], np.ones(events.shape[:-1])
    for age in range(1, limit + 1):
        at_risk = (((events == NEVER) | (events >= age)) & (seen >= age)).sum(axis=-1)
        failed = ((events == age) & (seen >= age)).sum(axis=-1)
        share = share * (1 - failed / np.maximum(at_risk, 1))
        shares.append(share)
    return np.stack(shares, axis=-1)


def measure_horizon(events: Events, scores: ScoreMatrix, random: np.random.Generator) -> Horizon:
    """Return the horizon of these events, with both null distributions and an interval over test rows."""
    A, limit = scores.mean, max(1, scores.size // 2)

    def means(matrices: np.ndarray) -> np.ndarray:
        return np.asarray(survival(events(matrices), limit).sum(axis=-1))

    ages = events(A)
    shares = survival(ages, limit)
    value = float(shares.sum())
    order = np.stack([random.permutation(len(A)) for _ in range(DRAWS)])
    permuted = means(A[order[:, :, None], order[:, None, :]])
    low, high = percentile_interval(means(_resampled(scores, random)))
    calm = percentile_interval(means(_without_aging(scores, random)))
    below = np.flatnonzero(shares < 0.5)
    return Horizon(
        value=value,
        low=min(float(low), value),
        high=max(float(high), value),
        n=scores.size - 1,
        unit="models",
        limit=limit,
        events=int(((ages != NEVER) & (ages <= limit)).sum()),
        median=int(below[0]) + 1 if len(below) else None,
        survival=tuple(shares.tolist()),
        permuted=float(permuted.mean()),
        p=float((1 + (permuted >= value - 1e-12).sum()) / (DRAWS + 1)),
        no_aging=(float(calm[0]), float(calm[1])),
    )


def stability_horizon(skill: ScoreMatrix, delta: float, random: np.random.Generator) -> Horizon:
    """Return the horizon at which models fall below `delta` of a new one."""
    return measure_horizon(partial(stability_events, delta=delta), skill, random)


def drift_horizon(skill: ScoreMatrix, random: np.random.Generator) -> Horizon:
    """Return the horizon at which drops below a model's own period accumulate to 15 points."""
    return measure_horizon(drift_events, skill, random)


def age_curve(skill: ScoreMatrix, delta: float) -> AgeCurve:
    """Return the ratio of old to new models by age, and the first age at which it is surely below `delta`."""
    size = skill.size
    ages = range(1, max(1, size // 2) + 1)
    by_age = [
        skill.ratio(np.eye(size, k=age), np.diag(np.eye(size, k=age).sum(axis=0)), size - age, "models") for age in ages
    ]
    crossed = (age for age, estimate in zip(ages, by_age, strict=True) if estimate.high < delta)
    return AgeCurve(tuple(by_age), next(crossed, None))


def _resampled(scores: ScoreMatrix, random: np.random.Generator) -> np.ndarray:
    """Return matrices from bootstrap draws of the test rows of each period."""
    draws = np.zeros((DRAWS, scores.size, scores.size))
    for x, period in zip(scores.rows, scores.periods, strict=True):
        for tau in range(scores.size):
            rows = x[:, period == tau]
            n = rows.shape[1]
            weights = random.multinomial(n, np.full(n, 1 / n), size=DRAWS) / n
            draws[:, :, tau] += weights @ rows.T / 2
    return draws


def _without_aging(scores: ScoreMatrix, random: np.random.Generator) -> np.ndarray:
    """Return matrices in which every model is as good as a new one, up to noise of training and of rows."""
    size, train = scores.size, np.sqrt(scores.training_variance)
    variance = np.zeros(size)
    for x, period in zip(scores.rows, scores.periods, strict=True):
        rest = ((x - x.mean(axis=0)) ** 2).mean(axis=0)
        n = np.maximum(np.bincount(period, minlength=size), 1)
        variance += np.bincount(period, rest, size) / n**2 / 2
    spread = np.where(np.eye(size) > 0, np.sqrt(variance), np.sqrt(variance / 2))
    noise = train * random.normal(size=(DRAWS, size, 1)) + spread * random.normal(size=(DRAWS, size, size))
    return np.asarray(np.diag(scores.mean) + noise)
