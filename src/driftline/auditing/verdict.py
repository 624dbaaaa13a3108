"""The verdict: did the model age, is it miscalibrated, do periods differ without order, did the data get harder?

Each claim needs a test against its own null hypothesis. "Aged" needs three: order in time, an advantage of models in
their own period, and that both older and newer models are worse there (the two-way rule), because each of them alone
has a blind side: rising noise looks like order, and unordered differences like an advantage.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from driftline.auditing.change_date import ChangeDate, date_of_change
from driftline.auditing.difference_tests import Course, OddPeriod, course_test, difference_test, odd_period
from driftline.auditing.interaction import likeness
from driftline.auditing.matrix import LossMatrix
from driftline.auditing.metric import Metric
from driftline.auditing.order_test import OrderTest, order_test
from driftline.auditing.score_matrix import ScoreMatrix
from driftline.auditing.shape import Shape, find_shape, segments
from driftline.seeds import Seed

LEVEL = 0.05  # of the order and difference tests
STRICT = 0.01  # of claims that rest on one test
ODD_LEVEL = 0.002  # of the odd-period test, whose normal approximation is the least exact
COURSE_LEVEL = 0.02
MIN_PERIODS = 5  # with fewer, no order is significant


@dataclass(frozen=True)
class PairTests:
    """Order and difference test of one loss matrix."""

    order: OrderTest | None
    """None: too few periods."""
    difference: float

    @property
    def significant(self) -> bool:
        return self.order is not None and self.order.p <= LEVEL and self.difference <= LEVEL


@dataclass(frozen=True)
class Verdict:
    """What the tests say. Findings are separate: data may get harder while models age."""

    recalibrated: PairTests
    """Tests of the loss after recalibration: the concept."""
    raw: PairTests
    """Tests of the loss as it is: concept, base rate and noise."""
    shifted: PairTests
    """Tests of the loss after the intercept is recalibrated."""
    older_behind: float
    """Mean loss of older models minus that of a period's own, after recalibration."""
    newer_behind: float
    """The same of newer models."""
    odd: OddPeriod
    others_differ: float
    """p-value of the difference test without the odd period."""
    course: Course
    """Course of the score of new models."""
    least_course: float
    """The least change of that score that counts."""
    has_skill: bool
    """Whether new models are surely better than a constant answer."""
    higher_is_better: bool
    shape: Shape | None = None
    dates: tuple[ChangeDate, ...] = ()
    """Of the cuts of the shape."""

    @property
    def two_way(self) -> bool:
        """Whether older and newer models are behind a period's own by similar amounts."""
        low, high = sorted([self.older_behind, self.newer_behind])
        return low >= high / 2 > 0

    @property
    def aged(self) -> bool:
        return self.has_skill and self.recalibrated.significant and self.two_way

    @property
    def miscalibrated(self) -> bool:
        return self.has_skill and not self.aged and self.raw.significant

    @property
    def unordered(self) -> bool:
        """Whether periods differ, but not in the order of time."""
        settled = self.aged or self.miscalibrated
        return self.has_skill and not settled and (self.recalibrated.difference <= STRICT or self.odd.p <= ODD_LEVEL)

    @property
    def is_odd(self) -> bool:
        """Whether one period is unlike all others, which do not differ from each other."""
        return self.unordered and self.odd.p <= ODD_LEVEL and self.others_differ > STRICT

    @property
    def base_rate_moved(self) -> bool:
        """Whether an intercept repairs the miscalibration."""
        return self.miscalibrated and not self.shifted.significant

    @property
    def only_ordered(self) -> bool:
        """Whether periods close in time are more alike, at a cost too small to show."""
        order = self.recalibrated.order
        other = self.aged or self.miscalibrated or self.unordered
        return self.has_skill and not other and order is not None and order.p <= STRICT

    @property
    def changed_difficulty(self) -> bool:
        return self.course.p <= COURSE_LEVEL and abs(self.course.change) >= self.least_course

    @property
    def harder(self) -> bool:
        return self.changed_difficulty and (self.course.change < 0) == self.higher_is_better


def judge(matrix: LossMatrix, metric: Metric, has_skill: bool, seed: Seed) -> Verdict:
    """Run all tests on a matrix, and find shape and dates of a significant change."""
    fresh = np.diag(matrix.scores[metric.name].mean)
    behind = _behind(matrix.recalibrated)
    odd = odd_period(matrix.raw.rows, matrix.raw.periods)
    others = np.delete(np.delete(matrix.recalibrated.halves, odd.index, 1), odd.index, 2)
    verdict = Verdict(
        recalibrated=_pair(matrix.recalibrated, seed.child("recalibrated")),
        raw=_pair(matrix.raw, seed.child("raw")),
        shifted=_pair(matrix.shifted, seed.child("shifted")),
        older_behind=behind[0],
        newer_behind=behind[1],
        odd=odd,
        others_differ=difference_test(others, seed.child("others").numpy()),
        course=course_test(fresh, seed.child("course").numpy()),
        least_course=metric.point(float(np.abs(fresh).mean())),
        has_skill=has_skill,
        higher_is_better=metric.higher_is_better,
    )
    if not (verdict.aged or verdict.miscalibrated):
        return verdict
    losses, tests = (matrix.recalibrated, verdict.recalibrated) if verdict.aged else (matrix.raw, verdict.raw)
    assert tests.order is not None
    shape = find_shape(likeness(losses.mean), tests.order, seed.child("shape").numpy())
    return replace(verdict, shape=shape, dates=_dates(matrix, shape))


def _pair(losses: ScoreMatrix, seed: Seed) -> PairTests:
    order = None
    if losses.size >= MIN_PERIODS:
        order = order_test(likeness(losses.mean), seed.child("order").numpy())
    return PairTests(order, difference_test(losses.halves, seed.child("difference").numpy()))


def _behind(losses: ScoreMatrix) -> tuple[float, float]:
    """Return how much older and newer models lose against a period's own."""
    gap = losses.mean - np.diag(losses.mean)
    older = np.triu(np.ones_like(gap), 1) > 0
    return float(gap[older].mean()), float(gap[older.T].mean())


def _dates(matrix: LossMatrix, shape: Shape) -> tuple[ChangeDate, ...]:
    """Return the date of each cut, from the losses of rows as negative log-likelihoods."""
    scale = 1.0
    if matrix.squared_errors:
        scale = 2 * max(float(np.median(np.diag(matrix.raw.mean))), 1e-300)
    first, second = (rows / scale for rows in matrix.raw.rows)
    ends = segments(matrix.size, shape.boundaries)
    return tuple(
        date_of_change(cut, (ends[k][0], ends[k + 1][1]), (first, second), matrix.raw.periods, matrix.halves.times)
        for k, cut in enumerate(shape.cuts)
    )
