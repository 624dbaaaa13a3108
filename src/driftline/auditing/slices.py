"""Slices: which segments of the rows decay, corrected for multiple tests.

A segment is a category or a quarter of a number. Its rows give a loss matrix of their own, and periods are permuted as
in the order test. All segments share the permutations, so the largest statistic among them corrects each p-value
(Westfall and Young).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy.stats import false_discovery_control, norm

from driftline.auditing.estimate import Estimate
from driftline.auditing.findings import amount, p_value
from driftline.auditing.interaction import likeness
from driftline.auditing.matrix import LossMatrix
from driftline.auditing.metric import CLASS_METRICS, NUMBER_METRICS, Metric
from driftline.auditing.order_test import kernels, permutations
from driftline.auditing.score_matrix import Z95, ScoreMatrix, cell_means
from driftline.auditing.sizes import loss_estimate
from driftline.auditing.table import AuditTable
from driftline.auditing.verdict import LEVEL, MIN_PERIODS, STRICT, Verdict
from driftline.auditing.wording import plain_number
from driftline.data.formats.column_kinds import column_kind, to_floats

MAX_FEATURES = 20  # that are cut into segments, those with the largest shift or the first ones
MAX_CATEGORIES = 8  # the most frequent categories of a feature
QUARTERS = 4
MIN_CELL = 10  # test rows of a segment in every period
PERMUTATIONS = 1000
MAX_NAMED = 3  # segments in the answer
ROW_MEANS = ("accuracy", "log-loss", "brier", "mae")  # metrics whose values of single rows mean something in a segment


@dataclass(frozen=True)
class Segment:
    """Rows with the same category, or with a number in the same quarter."""

    feature: str
    values: str
    rows: int
    """Test rows."""
    p: float
    """Of "the order of time says nothing about its rows", corrected for the number of segments."""
    decays: bool
    """Whether p is small enough, and a period's own models are surely better on it than older and than newer ones."""
    fresh: Estimate
    """Score of new models on its rows."""
    old: Estimate
    loss: Estimate
    """What older models lose on its rows."""
    elsewhere: Estimate
    """What older models lose on all other rows."""
    stands_out: bool
    """Whether it decays and surely loses more than the other rows (p at most 0.05 after Benjamini-Hochberg)."""
    first_age: int | None
    """The least age, in periods of the matrix, at which older models are surely behind; None: at no age."""


@dataclass(frozen=True)
class Slices:
    """All segments that have enough rows: those that stand out, those that decay, the others; by loss."""

    metric: Metric
    """The metric of the sizes: one that has a value for each row."""
    segments: tuple[Segment, ...]
    level: float
    """p at or below which a segment counts as decayed: stricter if the whole table shows no aging."""

    @property
    def decaying(self) -> tuple[Segment, ...]:
        return tuple(segment for segment in self.segments if segment.decays)


Mask = tuple[np.ndarray, np.ndarray]
"""Which test rows of each half belong to a segment."""


def measure_slices(table: AuditTable, matrix: LossMatrix, metric: Metric, verdict: Verdict) -> Slices | None:
    """Test all segments of the feature columns; None if periods are too few or models have no skill."""
    if matrix.size < MIN_PERIODS or not verdict.has_skill:
        return None
    found = list(_segments(table.frame.inputs, matrix))
    level = LEVEL if verdict.aged else STRICT
    shown, scores = _sizes_in(metric, matrix, table.has_probabilities)
    if not found:
        return Slices(shown, (), level)
    parts = [_part(matrix.recalibrated, mask) for *_, mask in found]
    p_values = corrected_p_values([likeness(part.mean) for part in parts], table.seed.child("slices").numpy())
    segments = [
        _segment(feature, values, p, level, part, scores, shown, mask)
        for (feature, values, mask), p, part in zip(found, p_values, parts, strict=True)
    ]
    segments = _standing_out(segments)
    segments.sort(key=lambda s: (not s.stands_out, not s.decays, s.elsewhere.value - s.loss.value))
    return Slices(shown, tuple(segments), level)


def _standing_out(segments: list[Segment]) -> list[Segment]:
    """Mark the segments that decay and surely lose more than the other rows."""
    excess = np.array([s.loss.value - s.elsewhere.value for s in segments])
    widths = np.array([[s.loss.high - s.loss.low, s.elsewhere.high - s.elsewhere.low] for s in segments])
    error = np.maximum(np.hypot(*widths.T) / (2 * Z95), 1e-300)
    adjusted = false_discovery_control(norm.sf(excess / error))
    return [replace(s, stands_out=bool(s.decays and p <= LEVEL)) for s, p in zip(segments, adjusted, strict=True)]


def corrected_p_values(alike: list[np.ndarray], random: np.random.Generator) -> np.ndarray:
    """Return p of the order of time in each likeness matrix, corrected by the largest statistic of all matrices."""
    size = len(alike[0])
    described, patterns = kernels(size)
    steps_and_trends = [kernel.family == "abrupt" or kernel.parameters == 1 for kernel in described]
    patterns, order = patterns[steps_and_trends], permutations(size, random)[:PERMUTATIONS]
    best = []
    for matrix in alike:
        fit = matrix[order[:, :, None], order[:, None, :]].reshape(len(order), -1) @ patterns.T
        spread = fit.std(axis=0)
        largest = ((fit - fit.mean(axis=0)) / np.where(spread > 1e-12, spread, np.inf)).max(axis=1)
        best.append((largest - largest.mean()) / max(float(largest.std()), 1e-12))
    statistic = np.stack(best)
    return np.asarray((statistic.max(axis=0) >= statistic[:, :1] - 1e-12).mean(axis=1))


def _segment(
    feature: str,
    values: str,
    p: float,
    level: float,
    part: ScoreMatrix,
    scores: ScoreMatrix,
    metric: Metric,
    mask: Mask,
) -> Segment:
    own, other = _part(scores, mask), _part(scores, (~mask[0], ~mask[1]))
    if metric.name == "rmse":
        own, other = _rooted(own), _rooted(other)
    size, sign = own.size, 1.0 if metric.higher_is_better else -1.0
    pairs = np.triu(np.ones((size, size)), 1)
    loss = loss_estimate(own, pairs, sign)
    two_way = all(loss_estimate(part, cells, -1.0).low > 0 for cells in (pairs, pairs.T))
    decays = bool(p <= level and two_way)
    ages = range(1, size) if decays else ()
    first = next((age for age in ages if loss_estimate(own, np.eye(size, k=age), sign).low > 0), None)
    fresh, old = (own.estimate(cells / pairs.sum()) for cells in (np.diag(pairs.sum(axis=0)), pairs))
    rows, elsewhere = int(own.counts.sum()), loss_estimate(other, pairs, sign)
    return Segment(feature, values, rows, float(p), decays, fresh, old, loss, elsewhere, False, first)


def _rooted(squares: ScoreMatrix) -> ScoreMatrix:
    """Return values of rows whose mean in each cell is the root of the mean square, linearized."""
    rows = []
    for x, period in zip(squares.rows, squares.periods, strict=True):
        means = cell_means(x, period, squares.size)[:, period]
        root = np.sqrt(np.maximum(means, 1e-300))
        rows.append(root + (x - means) / (2 * root))
    return ScoreMatrix((rows[0], rows[1]), squares.periods)


def _sizes_in(metric: Metric, matrix: LossMatrix, probabilities: bool) -> tuple[Metric, ScoreMatrix]:
    """Return a metric that has a value for each row: the deciding one, or else that of the loss."""
    if metric.name in ROW_MEANS:
        return metric, matrix.scores[metric.name]
    if matrix.squared_errors:
        return NUMBER_METRICS["rmse"], matrix.raw
    if probabilities:
        return CLASS_METRICS["log-loss"], matrix.raw
    return replace(CLASS_METRICS["accuracy"], name="error", title="share of errors", higher_is_better=False), matrix.raw


def _part(scores: ScoreMatrix, mask: Mask) -> ScoreMatrix:
    rows = tuple(x[:, chosen] for x, chosen in zip(scores.rows, mask, strict=True))
    return ScoreMatrix((rows[0], rows[1]), (scores.periods[0][mask[0]], scores.periods[1][mask[1]]))


def _segments(inputs: pd.DataFrame, matrix: LossMatrix) -> Iterator[tuple[str, str, Mask]]:
    """Yield feature, values and rows of each segment that has enough rows in every period."""
    ids, first = matrix.ids, len(matrix.halves.tested[0])
    period = np.concatenate(matrix.halves.periods)
    for name in inputs.columns[:MAX_FEATURES]:
        for values, chosen in _cut(inputs[name].iloc[ids]):
            if not chosen.all() and np.bincount(period[chosen], minlength=matrix.size).min() >= MIN_CELL:
                yield str(name), values, (chosen[:first], chosen[first:])


def _cut(column: pd.Series) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the segments of a column: its most frequent categories, or quarters of its numbers; and missing values."""
    kind, missing = column_kind(column), column.isna().to_numpy()
    if kind == "text":
        return
    if kind == "number" and column.nunique() > QUARTERS:
        values = to_floats(column)
        known = np.isfinite(values)
        edges = np.unique(np.quantile(values[known], np.arange(1, QUARTERS) / QUARTERS))
        at = np.searchsorted(edges, values, side="right")
        for k in range(len(edges) + 1):
            yield _range(edges, k), known & (at == k)
    else:
        texts = column.astype(str)
        for level in texts[~missing].value_counts().index[:MAX_CATEGORIES]:
            yield str(level), ~missing & (texts == level).to_numpy()
    yield "missing", missing


def _range(edges: np.ndarray, k: int) -> str:
    """Return the values of a quarter in words.

    >>> [_range(np.array([1.0, 2.5]), k) for k in range(3)]
    ['below 1', '1 to below 2.5', '2.5 or more']
    """
    texts = [plain_number(edge, digits=4) for edge in edges]
    if k == 0:
        return f"below {texts[0]}"
    return f"{texts[-1]} or more" if k == len(edges) else f"{texts[k - 1]} to below {texts[k]}"


def slice_sentences(slices: Slices, age: Callable[[float], str]) -> list[str]:
    """Say which segments decay; `age` writes a number of periods of the matrix."""
    count, metric = len(slices.segments), slices.metric
    if not count:
        return ["No category or quarter of a feature has enough rows in every period to be tested."]
    decaying, named = slices.decaying, [segment for segment in slices.segments if segment.stands_out]
    if not decaying:
        return [f"A lasting decay is significant in none of {count} segments (categories and quarters of features)."]
    sentences = [f"{len(decaying)} of {count} segments decay (p ≤ {slices.level:g}, corrected for all of them)."]
    if not named:
        return [*sentences, "None of them surely loses more than the other rows."]
    for segment in named[:MAX_NAMED]:
        since = "" if segment.first_age is None else f", surely from an age of {age(segment.first_age)} on"
        sentences.append(
            f"'{segment.feature}' {segment.values}: older models lose {amount(metric, segment.loss)} in "
            f"{metric.title}{since}; on other rows {amount(metric, segment.elsewhere)} ({p_value(segment.p)})."
        )
    return sentences
