"""Label shift and prediction shift: do the labels, or the model's scores, differ between periods?

Rows of a period are averaged in ten blocks of consecutive rows, so that rows that depend on their neighbors do not
count as many.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import kruskal

from driftline.auditing.difference_tests import course_test
from driftline.auditing.table import AuditTable
from driftline.types import Answers

BLOCKS = 10
LEVEL = 0.01
MIN_CHANGE = 0.02  # of a share
MIN_CHANGE_SD = 0.1  # of a number, in standard deviations


@dataclass(frozen=True)
class DistributionShift:
    """Whether a share or a mean differs between periods."""

    p: float
    """Corrected for the number of classes."""
    moved: str | None
    """The class whose share moved most; None for a number."""
    first: float
    """Fitted share or mean at the begin and at the end."""
    last: float
    significant: bool
    """Whether p is at most 0.01 and the fitted change large enough."""


@dataclass(frozen=True)
class LabelShift:
    """Shift of labels, of predictions, and of predictions within classes."""

    labels: DistributionShift
    predictions: DistributionShift | None
    within_classes: DistributionShift | None
    """Of scores among rows of the same class; None for numbers and for logs."""


def measure_label_shift(table: AuditTable, answers: dict[int, Answers]) -> LabelShift:
    """Test labels in all periods, and the answers of one model in the periods that it predicted."""
    random = table.seed.child("label-shift").numpy()
    names = [str(label) for label in table.frame.labels] if table.frame.labels is not None else None
    y = [rows.y for rows in table.periods]
    labels = shift_between(_columns(y, len(names or [])), names, random)
    known = sorted(answers)
    if len(known) < 3:
        return LabelShift(labels, None, None)
    scores = [_scores(table, answers[k]) for k in known]
    predictions = shift_between(scores, names, random)
    within = None
    if names is not None and not table.is_log:
        within = _within(scores, [table.periods[k].y for k in known], names, random)
    return LabelShift(labels, predictions, within)


def _columns(y: Sequence[np.ndarray], classes: int) -> list[np.ndarray]:
    return [np.eye(classes)[part] if classes else part[:, None].astype(float) for part in y]


def _scores(table: AuditTable, answers: Answers) -> np.ndarray:
    if not table.is_classification:
        return np.asarray(answers.prediction, float)[:, None]
    if table.has_probabilities and answers.scores is not None:
        return answers.scores
    width = table.frame.task.width
    return np.asarray(
        np.vstack([np.eye(width), np.zeros(width)])[answers.prediction]
    )  # -1: a class that the target never holds


def shift_between(
    periods: Sequence[np.ndarray], names: Sequence[str] | None, random: np.random.Generator
) -> DistributionShift:
    """Test the columns of values by period, such as one indicator per class."""
    width = periods[0].shape[1]
    used = [0] if width == 1 else [1] if width == 2 else list(range(width))
    tests = []
    for k in used:
        means = [block_means(part[:, k]) for part in periods]
        tests.append((_kruskal(means), k))
    p, k = min(tests)
    course = course_test(np.array([part[:, k].mean() for part in periods]), random)
    spread = float(np.concatenate([part[:, k] for part in periods]).std())
    least = MIN_CHANGE if names is not None else MIN_CHANGE_SD * spread
    ends = course.first, course.last
    first, last = np.clip(ends, 0, 1) if names is not None else ends  # a fitted share may lie outside
    p = min(1.0, p * len(used))
    significant = p <= LEVEL and abs(course.change) >= least and least > 0
    return DistributionShift(p, names[k] if names else None, float(first), float(last), significant)


def _within(
    scores: Sequence[np.ndarray], y: Sequence[np.ndarray], names: Sequence[str], random: np.random.Generator
) -> DistributionShift | None:
    """Return the most significant shift of a class's own score among its rows, corrected for the number of classes."""
    found = []
    for k in range(len(names)):
        parts = [score[truth == k][:, [k]] for score, truth in zip(scores, y, strict=True)]
        if min(map(len, parts)) >= BLOCKS:
            found.append(shift_between(parts, [names[k]], random))
    if not found:
        return None
    best = min(found, key=lambda shift: shift.p)
    p = min(1.0, best.p * len(found))
    return DistributionShift(p, best.moved, best.first, best.last, best.significant and p <= LEVEL)


def block_means(values: np.ndarray) -> np.ndarray:
    """Return the means of ten blocks of consecutive values.

    >>> block_means(np.arange(20.0))[:2].tolist()
    [0.5, 2.5]
    """
    return np.array([block.mean() for block in np.array_split(values, min(BLOCKS, len(values)))])


def _kruskal(groups: Sequence[np.ndarray]) -> float:
    everything = np.concatenate(groups)
    return 1.0 if np.ptp(everything) == 0 else float(kruskal(*groups).pvalue)
