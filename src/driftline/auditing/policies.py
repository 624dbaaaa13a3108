"""Retraining policies compared: quality, cost, and how sure their differences are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from driftline.auditing.estimate import Estimate
from driftline.auditing.matrix import constant_answers
from driftline.auditing.metric import Metric
from driftline.auditing.replay import ALL_HISTORY, NEVER, Replay
from driftline.auditing.score_matrix import Z95
from driftline.auditing.table import AuditTable
from driftline.types import Answers

TRIVIAL = "trivial"  # no model, a constant answer


@dataclass(frozen=True)
class PolicyResult:
    """Quality and cost of one policy. Differences are positive where this policy is better, except `behind`."""

    policy: str
    quality: Estimate
    """Mean score over the replayed periods."""
    behind: Estimate
    """Difference from the best policy, paired."""
    gained: Estimate
    """Gain over never retraining, paired."""
    above_trivial: Estimate
    """Gain over the trivial baseline, paired."""
    retrainings: int
    """Trainings after the first."""
    retrained_before: tuple[str, ...]
    """Periods before which a new model was deployed, the first one included."""
    rows: int
    """Rows trained on, in all trainings."""
    error: float
    """Share of wrong answers, or mean absolute error."""
    alarms: tuple[str, ...]
    online_tas: tuple[float, ...]
    """The online TAS by which the policy decided; empty for other policies."""
    by_period: tuple[Estimate, ...]
    """Score in each replayed period."""
    other_metrics: dict[str, float]
    """Mean score under the metrics that do not decide."""
    cost: float | None = None
    """Cost of errors and retrainings per 1,000 answers; None if no cost is given."""
    on_frontier: bool = False
    """Whether no policy with as few retrainings is better."""


@dataclass(frozen=True)
class Scored:
    """Scores of one policy by period, and the variance due to its training rows."""

    rows: tuple[np.ndarray, ...]
    training_variance: float


@dataclass(frozen=True)
class TrainingNoise:
    """How much a score varies with the training rows: the variance of one model of `rows` rows."""

    variance: float
    rows: int

    def of(self, replay: Replay, replayed: int, deployed: int) -> float:
        """Return the variance of a policy's mean score: less with more rows, and with more independent models."""
        if not replay.rows:  # the trivial baseline
            return 0.0
        independent = min(len(replay.trainings), 1 + replayed / deployed)
        return self.variance * self.rows / max(replay.rows_per_training, 1.0) / independent


def compare_policies(
    table: AuditTable, metrics: Sequence[Metric], replays: Mapping[str, Replay], noise: TrainingNoise
) -> tuple[PolicyResult, ...]:
    """Return quality and cost of each policy, the best first, and of the trivial baseline, which comes last."""
    metric = metrics[0]
    sign = 1.0 if metric.higher_is_better else -1.0
    replays = {**replays, TRIVIAL: _trivial(table, metric)}
    used = range(table.first_replayed, len(table.periods))
    scored = {
        name: Scored(_scores(table, metric, replay), noise.of(replay, len(used), table.deployed))
        for name, replay in replays.items()
    }
    quality = {name: float(np.mean([part.mean() for part in s.rows])) for name, s in scored.items()}
    order = sorted(quality, key=lambda name: (name == TRIVIAL, -sign * quality[name], replays[name].rows, name))

    def results(name: str) -> PolicyResult:
        replay = replays[name]
        return PolicyResult(
            policy=name,
            quality=metric.within(_mean(scored[name])),
            behind=_difference(scored[order[0]], scored[name], sign),
            gained=_difference(scored[name], scored[NEVER], sign),
            above_trivial=_difference(scored[name], scored[TRIVIAL], sign),
            retrainings=max(0, len(replay.trainings) - 1),
            retrained_before=tuple(table.names[k] for k in replay.trainings),
            rows=replay.rows,
            error=_error(table, replay),
            alarms=tuple(table.names[k] for k in replay.alarms),
            online_tas=replay.online_tas,
            by_period=tuple(metric.within(_mean(Scored((part,), 0.0))) for part in scored[name].rows),
            other_metrics={
                other.name: float(np.mean([part.mean() for part in _scores(table, other, replay)]))
                for other in metrics[1:]
            },
        )

    return tuple(results(name) for name in order)


def gain_parts(
    table: AuditTable, metric: Metric, replays: Mapping[str, Replay], noise: TrainingNoise
) -> tuple[Estimate, Estimate]:
    """Return what newer rows gain (window against never) and what more rows gain (all history against window)."""
    used = len(table.periods) - table.first_replayed
    never, window, history = (
        Scored(_scores(table, metric, replays[name]), noise.of(replays[name], used, table.deployed))
        for name in (NEVER, f"window-{table.deployed}", ALL_HISTORY)
    )
    sign = 1.0 if metric.higher_is_better else -1.0
    return _difference(window, never, sign), _difference(history, window, sign)


def _scores(table: AuditTable, metric: Metric, replay: Replay) -> tuple[np.ndarray, ...]:
    return tuple(metric.rows(table.periods[k].y, a.prediction, a.scores) for k, a in sorted(replay.answers.items()))


def _mean(scored: Scored) -> Estimate:
    """Return the mean over periods; its error has a part from rows and one from training."""
    parts = scored.rows
    value = float(np.mean([part.mean() for part in parts]))
    variance = sum(part.var() / len(part) for part in parts) / len(parts) ** 2 + scored.training_variance
    error = Z95 * float(np.sqrt(variance))
    return Estimate(value, value - error, value + error, sum(map(len, parts)), "answers")


def _difference(a: Scored, b: Scored, sign: float) -> Estimate:
    """Return the mean of a - b, paired by row and given the course of the world."""
    if a is b:
        return Estimate(0.0, 0.0, 0.0)
    paired = Scored(
        tuple(sign * (x - y) for x, y in zip(a.rows, b.rows, strict=True)), a.training_variance + b.training_variance
    )
    estimate = _mean(paired)
    rounding = abs(estimate.value) < 1e-9 * (estimate.high - estimate.low)
    return Estimate(0.0 if rounding else estimate.value, estimate.low, estimate.high)


def _trivial(table: AuditTable, metric: Metric) -> Replay:
    """Return the constant answers of all labels known so far."""
    answers = {}
    for k in range(table.first_replayed, len(table.periods)):
        labels = np.concatenate([table.arrivals.rows(j, k).y for j in range(k)])
        prediction, probability = constant_answers(table, labels, len(table.periods[k]), metric)
        answers[k] = Answers(prediction, probability)
    return Replay(answers, (table.first_replayed,), 0)


def _error(table: AuditTable, replay: Replay) -> float:
    errors = [
        a.prediction != table.periods[k].y if table.is_classification else np.abs(a.prediction - table.periods[k].y)
        for k, a in replay.answers.items()
    ]
    return float(np.mean(np.concatenate(errors)))
