"""Quality of logged predictions over time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from driftline.auditing.difference_tests import Course, course_test
from driftline.auditing.estimate import Estimate
from driftline.auditing.matrix import constant_answers
from driftline.auditing.metric import Metric
from driftline.auditing.score_matrix import Z95
from driftline.auditing.table import AuditTable
from driftline.auditing.verdict import COURSE_LEVEL
from driftline.types import Answers

MIN_UNITS = 24  # of the test for a trend or step


@dataclass(frozen=True, eq=False)
class LogQuality:
    """Scores of logged predictions."""

    metric: Metric
    first_own: Estimate
    """Score in the first period."""
    first_later: Estimate
    """Score in all later periods."""
    by_period: tuple[Estimate, ...]
    course: Course
    baseline: Estimate
    """Score of the constant answer of the first period."""
    above: Estimate
    """What the predictions are better than the baseline by."""

    @property
    def changed(self) -> bool:
        """Whether a trend or step is significant and at least one point, or one percent of an error."""
        return self.course.p <= COURSE_LEVEL and abs(self.course.change) >= self.metric.point(self.course.first)

    @property
    def worse(self) -> bool:
        return self.changed and (self.course.change < 0) == self.metric.higher_is_better


def logged_answers(table: AuditTable) -> dict[int, Answers]:
    """Return the logged predictions by period."""
    frame = table.frame
    assert frame.logged_predictions is not None
    at = np.empty(len(frame.table), int)
    at[frame.samples.id] = np.arange(len(frame.samples))
    shares = frame.logged_probabilities
    return {
        k: Answers(frame.logged_predictions[at[rows.id]], None if shares is None else shares[at[rows.id]])
        for k, rows in enumerate(table.periods)
    }


def measure_log(table: AuditTable, metric: Metric, answers: dict[int, Answers]) -> LogQuality:
    """Return the quality of logged predictions."""
    scores = [metric.rows(rows.y, answers[k].prediction, answers[k].scores) for k, rows in enumerate(table.periods)]
    trivial = [
        metric.rows(rows.y, *constant_answers(table, table.periods[0].y, len(rows), metric)) for rows in table.periods
    ]
    sign = 1.0 if metric.higher_is_better else -1.0
    return LogQuality(
        metric=metric,
        first_own=metric.within(_mean(scores[:1])),
        first_later=metric.within(_mean(scores[1:])),
        by_period=tuple(metric.within(_mean([part])) for part in scores),
        course=course_test(_series(scores), table.seed.child("course").numpy()),
        baseline=metric.within(_mean(trivial)),
        above=_mean([sign * (a - b) for a, b in zip(scores, trivial, strict=True)]),
    )


def step_period(log: LogQuality) -> int | None:
    """Return the period that begins with the fitted step of the scores; None for a trend."""
    return None if log.course.start is None else log.course.start // _pieces(len(log.by_period))


def _pieces(periods: int) -> int:
    return -(-MIN_UNITS // periods)


def _series(scores: list[np.ndarray]) -> np.ndarray:
    """Return mean scores in order of time; of parts of periods if there are few, which allow few permutations."""
    pieces = _pieces(len(scores))
    return np.array([part.mean() for rows in scores for part in np.array_split(rows, min(pieces, len(rows)))])


def _mean(parts: list[np.ndarray]) -> Estimate:
    values = np.concatenate(parts)
    value, error = float(values.mean()), Z95 * float(values.std() / np.sqrt(len(values)))
    return Estimate(value, value - error, value + error, len(values), "answers")
