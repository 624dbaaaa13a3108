"""The matrix: models of half of each period, tested on the other half of every period, earlier and later.

The rows of a period are split into two halves. All models are trained on the same number of rows, one per half and
period, and tested on the other half of every period. So a model's own period is held out with as many rows as any
other, and old and new models differ in age only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from driftline.auditing.copies import first_copies
from driftline.auditing.metric import Metric
from driftline.auditing.recalibration import log_loss, recalibrated_loss, recalibrated_squares
from driftline.auditing.score_matrix import ScoreMatrix
from driftline.auditing.table import WANTED_PERIODS, AuditTable, draw
from driftline.types import Samples

BLOCKS = 10  # of consecutive rows per period, which go to the halves in turn
MIN_ROWS = 40  # of a period that is cut from a longer one
MIN_RARE = 20  # rows of the rarer of two classes in it
SMALL = 0.25  # a period with less than this share of the median number of rows joins its neighbor
Pair = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True, eq=False)
class Halves:
    """Periods for the matrix, each split into two halves of training rows and two of test rows."""

    names: tuple[str, ...]
    pieces: int
    """Number of these periods in each period of the page."""
    training: tuple[tuple[Samples, ...], tuple[Samples, ...]]
    """By half and period; all have the same number of rows."""
    tested: tuple[Samples, Samples]
    """What the models of each half are tested on: rows of the other half."""
    periods: Pair
    """The period of each test row."""
    random: bool
    """Whether rows are split at random, because too few times are distinct for blocks of consecutive rows."""

    @property
    def training_rows(self) -> int:
        return len(self.training[0][0])

    @property
    def times(self) -> Pair:
        return tuple(np.asarray(rows.time) for rows in self.tested)  # type: ignore[return-value]


@dataclass(frozen=True, eq=False)
class ModelLosses:
    """Answers of one model on all test rows, and their losses."""

    raw: np.ndarray
    """Log loss, squared error, or for models without probabilities 0 or 1."""
    recalibrated: np.ndarray
    """The same after the best recalibration in each period."""
    shifted: np.ndarray
    """The same if only the intercept is recalibrated."""
    errors: np.ndarray
    """0 or 1 for classes, squared errors for numbers."""
    scores: dict[str, np.ndarray]
    """By metric."""


@dataclass(frozen=True, eq=False)
class LossMatrix:
    """Losses and scores of all half-models on all test rows."""

    halves: Halves
    raw: ScoreMatrix
    recalibrated: ScoreMatrix
    shifted: ScoreMatrix
    scores: dict[str, ScoreMatrix]
    baselines: dict[str, ScoreMatrix]
    """Scores of the constant answer that is best in the training rows of each period, in that period."""
    squared_errors: bool
    """Whether losses are squared errors, and not negative log-likelihoods."""
    first_errors: np.ndarray
    """Errors of the first period's models on the test rows of both halves."""

    @cached_property
    def size(self) -> int:
        return len(self.halves.names)

    @property
    def ids(self) -> np.ndarray:
        """Row numbers of the test rows of both halves."""
        return np.concatenate([rows.id for rows in self.halves.tested])


def split_halves(table: AuditTable) -> Halves:
    """Cut periods finer if there are fewer than 12, and split the rows of each into halves."""
    names, parts, pieces = _fine_periods(table)
    distinct = np.mean([len(np.unique(np.asarray(part.time))) for part in parts])
    random = bool(distinct < 2 * BLOCKS)
    split = [_split(part, k, table, random) for k, part in enumerate(parts)]
    least = min(min(len(a), len(b)) for a, b in split)
    rows, limit = min(least, table.limits.probe_rows), max(1, table.limits.probe_rows // 2)
    seed = table.seed.child("halves")
    training, tested, periods = [], [], []
    for half in (0, 1):
        training.append(tuple(draw(pair[half], rows, seed.child("train", half, k)) for k, pair in enumerate(split)))
        chosen = [draw(pair[1 - half], limit, seed.child("examine", half, k)) for k, pair in enumerate(split)]
        tested.append(Samples.concat(chosen))
        periods.append(np.repeat(np.arange(len(chosen)), [len(part) for part in chosen]))
    return Halves(names, pieces, tuple(training), tuple(tested), tuple(periods), random)  # type: ignore[arg-type]


def _fine_periods(table: AuditTable) -> tuple[tuple[str, ...], list[Samples], int]:
    """Return names and rows of periods for the matrix, and how many of them one period of the page has."""
    pieces, count = 1, len(table.periods)
    typical = float(np.median([len(rows) for rows in table.periods]))
    rare = float(np.median([_rare_rows(table, rows) for rows in table.periods]))
    while count * pieces < WANTED_PERIODS and typical / (2 * pieces) >= MIN_ROWS and rare / (2 * pieces) >= MIN_RARE:
        pieces *= 2
    names, parts = [], []
    for name, rows in zip(table.names, table.periods, strict=True):
        for k, index in enumerate(np.array_split(np.arange(len(rows)), pieces)):
            names.append(name if pieces == 1 else f"{name} ({k + 1}/{pieces})")
            parts.append(rows[index])
    names, parts = _merge_small(names, parts)
    return tuple(names), parts, pieces


def _rare_rows(table: AuditTable, rows: Samples) -> float:
    if not table.is_classification or table.frame.task.width != 2:
        return np.inf
    return float(np.bincount(rows.y, minlength=2).min())


def _merge_small(names: Sequence[str], parts: Sequence[Samples]) -> tuple[list[str], list[Samples]]:
    """Return periods in which those with few rows are joined with the one before; the first with the one after."""
    least = max(4.0, SMALL * float(np.median([len(part) for part in parts])))
    merged: list[tuple[str, Samples]] = []
    for name, part in zip(names, parts, strict=True):
        if merged and (len(part) < least or len(merged[-1][1]) < least):
            before, rows = merged[-1]
            merged[-1] = (f"{before.partition(' to ')[0]} to {name}", Samples.concat([rows, part]))
        else:
            merged.append((name, part))
    return [name for name, _ in merged], [part for _, part in merged]


def _split(rows: Samples, index: int, table: AuditTable, random: bool) -> tuple[Samples, Samples]:
    """Return two halves: alternating blocks of consecutive rows, or a random split.

    Copies of a row stay together, unless that would leave a half with less than a quarter of the rows.
    """
    n = len(rows)
    if random:
        order = table.seed.child("halves", "split", index).numpy().permutation(n)
        first = np.zeros(n, bool)
        first[order[: n // 2]] = True
    else:
        blocks = min(BLOCKS, n)
        first = (np.arange(n) * blocks // n + index) % 2 == 0
    if table.copy_keys is not None:
        together = first[first_copies(table.copy_keys[rows.id])]
        if n <= 4 * together.sum() <= 3 * n:
            first = together
    return rows[np.flatnonzero(first)], rows[np.flatnonzero(~first)]


def evaluate(table: AuditTable, halves: Halves, metrics: Sequence[Metric], half: int, t: int) -> ModelLosses:
    """Train the model of a half of a period, and return its losses and scores on all test rows."""
    rows, cell = halves.tested[half], halves.periods[half]
    model = table.fit(halves.training[half][t])
    answers = table.answer(model, rows)
    y, predicted = rows.y, answers.prediction
    probability = answers.scores if table.has_probabilities else None
    if probability is not None:
        raw = log_loss(probability, y)
        best, shifted = (recalibrated_loss(probability, y, cell, slope) for slope in (True, False))
    elif table.is_classification:
        raw = best = shifted = (predicted != y).astype(float)
    else:
        raw = (predicted - y) ** 2
        best, shifted = (recalibrated_squares(predicted, y, cell, slope) for slope in (True, False))
    errors = (predicted != y).astype(float) if table.is_classification else (predicted - y) ** 2
    scores = {m.name: score_by_period(m, y, predicted, probability, cell).astype(np.float32) for m in metrics}
    return ModelLosses(raw.astype(np.float32), best.astype(np.float32), shifted.astype(np.float32), errors, scores)


def score_by_period(
    metric: Metric, y: np.ndarray, predicted: np.ndarray, probability: np.ndarray | None, period: np.ndarray
) -> np.ndarray:
    """Return the value of each row under a metric that is computed period by period."""
    values = np.empty(len(y))
    for k in np.unique(period):
        rows = period == k
        values[rows] = metric.rows(y[rows], predicted[rows], None if probability is None else probability[rows])
    return values


def assemble(table: AuditTable, halves: Halves, metrics: Sequence[Metric], losses: Sequence[ModelLosses]) -> LossMatrix:
    """Return the matrix from the losses of all models: those of the first half by period, then of the second."""
    size = len(halves.names)

    def stack(values: Sequence[np.ndarray]) -> ScoreMatrix:
        rows = np.stack(values[:size]).astype(float), np.stack(values[size:]).astype(float)
        return ScoreMatrix(rows, halves.periods)

    return LossMatrix(
        halves,
        raw=stack([loss.raw for loss in losses]),
        recalibrated=stack([loss.recalibrated for loss in losses]),
        shifted=stack([loss.shifted for loss in losses]),
        scores={metric.name: stack([loss.scores[metric.name] for loss in losses]) for metric in metrics},
        baselines={metric.name: _baseline(table, halves, metric) for metric in metrics},
        squared_errors=not table.is_classification,
        first_errors=np.concatenate([losses[0].errors, losses[size].errors]),
    )


def _baseline(table: AuditTable, halves: Halves, metric: Metric) -> ScoreMatrix:
    lines = []
    for training, rows, period in zip(halves.training, halves.tested, halves.periods, strict=True):
        values = np.empty(len(rows))
        for k, own in enumerate(training):
            inside = period == k
            y = rows.y[inside]
            values[inside] = metric.rows(y, *constant_answers(table, own.y, len(y), metric))
        lines.append(np.tile(values, (len(halves.names), 1)))
    return ScoreMatrix((lines[0], lines[1]), halves.periods)


def constant_answers(
    table: AuditTable, labels: np.ndarray, n: int, metric: Metric
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the trivial answers: most frequent class and class shares; mean or, for absolute errors, median."""
    if not table.is_classification:
        return np.full(n, np.median(labels) if metric.name == "mae" else labels.mean()), None
    shares = np.bincount(labels, minlength=table.frame.task.width) / len(labels)
    return np.full(n, shares.argmax()), np.tile(shares, (n, 1))
