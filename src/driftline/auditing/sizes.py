"""Sizes in the user's metric: what an old model loses against a new one of equal rows, and the TAS."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from driftline.auditing.estimate import Estimate
from driftline.auditing.metric import Metric
from driftline.auditing.score_matrix import ScoreMatrix

MIN_SKILL = 0.1  # the skill that new models surely have, for a ratio of skills to mean anything


@dataclass(frozen=True, eq=False)
class Sizes:
    """Scores of new and old models. Losses are positive where old models are worse, whatever the metric."""

    metric: Metric
    tas: Estimate
    """Score, or skill for a loss, of old models as a share of that of new ones; not clipped."""
    tas_minimum: Estimate
    """Of the model with the lowest."""
    fresh: Estimate
    """Score of new models: in their own period, each as often as older models meet it."""
    old: Estimate
    """Score of older models in the same periods."""
    staleness: Estimate
    """Mean loss of old models against new ones."""
    loss_by_age: tuple[Estimate, ...]
    """The same after 1, 2, ... periods."""
    first_own: Estimate
    """Score of the first model in its own period."""
    first_later: Estimate
    baseline: Estimate
    """Score of the trivial baseline: a constant answer, fitted in each period."""
    above: Estimate
    """What models are better than the baseline by, in their own periods."""

    def noticeable(self) -> float:
        """Return the loss that would have been noticed with high probability."""
        return 2.8 * (self.staleness.high - self.staleness.low) / (2 * 1.96)


def measure_sizes(metric: Metric, scores: ScoreMatrix, baseline: ScoreMatrix) -> Sizes:
    """Return the sizes; `baseline`: scores of the constant of each period, the same for all models."""
    size, sign = scores.size, 1.0 if metric.higher_is_better else -1.0
    older, own = _older(size), np.eye(size)
    pairs, answers = int(older.sum()), int((older.sum(axis=0) * scores.counts).sum())
    fresh_weights = own / size
    skill = scores if metric.higher_is_better else skill_matrix(scores, baseline)
    tas = skill.ratio(older, _fresh_for(older), size - 1, "models")
    by_model = [skill.ratio(w, _fresh_for(w), size - 1 - t, "periods") for t, w in enumerate(_by_model(size))]
    if not metric.higher_is_better and skill.estimate(fresh_weights).low <= MIN_SKILL:
        tas, by_model = Estimate(np.nan, np.nan, np.nan, size - 1, "models"), []
    first = np.zeros((size, size))
    first[0, 1:] = 1 / (size - 1)
    difference = ScoreMatrix(
        tuple(sign * (a - b) for a, b in zip(scores.rows, baseline.rows, strict=True)),
        scores.periods,
    )
    return Sizes(
        metric=metric,
        tas=tas,
        tas_minimum=min(by_model, key=lambda e: e.value, default=tas),
        fresh=metric.within(scores.estimate(_fresh_for(older) / pairs, answers, "answers")),
        old=metric.within(scores.estimate(older / pairs, answers, "answers")),
        staleness=loss_estimate(scores, older, sign, answers, "answers"),
        loss_by_age=tuple(
            loss_estimate(scores, np.eye(size, k=age), sign, size - age, "models") for age in range(1, size)
        ),
        first_own=metric.within(scores.estimate(np.outer(own[0], own[0]), int(scores.counts[0]), "answers")),
        first_later=metric.within(scores.estimate(first, int(scores.counts[1:].sum()), "answers")),
        baseline=metric.within(baseline.estimate(fresh_weights, int(scores.counts.sum()), "answers")),
        above=difference.estimate(fresh_weights, int(scores.counts.sum()), "answers"),
    )


def loss_estimate(
    scores: ScoreMatrix, pairs: np.ndarray, sign: float, n: int | None = None, unit: str | None = None
) -> Estimate:
    """Return the mean over pairs (t, tau) of how much worse model t is than model tau in period tau."""
    weights = sign * (_fresh_for(pairs) - pairs) / max(pairs.sum(), 1)
    return scores.estimate(weights, n, unit)


def loss_across(
    scores: ScoreMatrix, cut: int, higher_is_better: bool, start: int = 0, end: int | None = None
) -> Estimate:
    """Return what models of before a cut lose after it, within the segments from `start` to `end`."""
    pairs = np.zeros((scores.size, scores.size))
    pairs[start:cut, cut:end] = 1
    return loss_estimate(scores, pairs, 1.0 if higher_is_better else -1.0)


def loss_per_period(scores: ScoreMatrix, higher_is_better: bool) -> Estimate:
    """Return the least-squares slope of the loss over age, through 0, for ages up to half of the time."""
    size, sign = scores.size, 1.0 if higher_is_better else -1.0
    ages = np.arange(1, size // 2 + 1)
    weights = np.zeros((size, size))
    for age in map(int, ages):
        pairs = np.eye(size, k=age)
        weights += age * (_fresh_for(pairs) - pairs) / pairs.sum()
    return scores.estimate(sign * weights / float((ages**2).sum()))


def skill_matrix(scores: ScoreMatrix, baseline: ScoreMatrix) -> ScoreMatrix:
    """Return the skill of a loss: 1 - loss / loss of the constant of the same period."""
    scales = tuple(
        np.maximum(np.diag(half)[period], 1e-12) for half, period in zip(baseline.halves, baseline.periods, strict=True)
    )
    return scores.scaled(scales)


def _older(size: int) -> np.ndarray:
    return np.triu(np.ones((size, size)), 1)


def _fresh_for(pairs: np.ndarray) -> np.ndarray:
    """Return the weights of new models that match those of old ones in each period."""
    return np.diag(pairs.sum(axis=0))


def _by_model(size: int) -> list[np.ndarray]:
    models = []
    for t in range(size - 1):
        weights = np.zeros((size, size))
        weights[t, t + 1 :] = 1
        models.append(weights)
    return models
