"""Metrics of an audit. Each gives one value per row whose mean is the metric, so that all have intervals.

Metrics that are not means of rows (F1, AUC, RMSE, a user's function) are linearized: the value of a row is the metric
plus the row's influence on it.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from scipy.stats import rankdata

from driftline.auditing.estimate import Estimate
from driftline.auditing.options import UserMetric
from driftline.auditing.recalibration import log_loss
from driftline.auditing.wording import plain_number
from driftline.errors import UserError, unknown_name
from driftline.io import user_code
from driftline.tasks import Classification, Task

Rows = Callable[[np.ndarray, np.ndarray, np.ndarray | None], np.ndarray]
"""From truth, prediction and class probabilities (None for numbers) of one period to a value per row."""
RARE = 0.2  # below this share of the rarer of two classes, accuracy hides what happens to it
DOMINANT = 0.8  # above this share of the most frequent of several classes, too
BOUNDS = {"share": (0.0, 1.0), "target": (0.0, np.inf), "plain": (-np.inf, np.inf)}
R2_BOUNDS = (-np.inf, 1.0)
GROUPS = 10  # of rows that are left out in turn, for a user's function


@dataclass(frozen=True)
class Metric:
    """A metric: its name, and how it is computed and written."""

    name: str
    title: str
    rows: Rows = field(repr=False, compare=False)
    higher_is_better: bool = True
    unit: Literal["share", "target", "plain"] = "share"
    probabilities: bool = False
    """Whether it needs class probabilities."""

    def within(self, estimate: Estimate) -> Estimate:
        """Return an estimate of this metric with an interval that holds possible values only."""
        low, high = np.clip((estimate.low, estimate.high), *(R2_BOUNDS if self.name == "r2" else BOUNDS[self.unit]))
        return replace(estimate, low=float(low), high=float(high))

    def point(self, level: float) -> float:
        """Return the least change that counts: one point; of an error, one percent of its level."""
        return 0.01 if self.unit == "share" or self.name == "r2" else 0.01 * abs(level)

    def text(self, value: float) -> str:
        """Return a value in words, such as "78.1%" or "0.412"."""
        if not math.isfinite(value):
            return "–"
        return f"{100 * value:.1f}%" if self.unit == "share" else plain_number(value)

    def difference(self, value: float, sign: bool = False) -> str:
        """Return a difference in words, such as "9.1 points" or "0.412"."""
        if not math.isfinite(value):
            return "–"
        plus = "+" if sign else ""
        return f"{100 * value:{plus}z.1f} points" if self.unit == "share" else plain_number(value, plus)


def _accuracy(y: np.ndarray, predicted: np.ndarray, probability: np.ndarray | None) -> np.ndarray:
    return np.asarray(predicted == y, float)


def _balanced(y: np.ndarray, predicted: np.ndarray, probability: np.ndarray | None) -> np.ndarray:
    counts = np.bincount(y)
    return np.asarray((predicted == y) * len(y) / (np.count_nonzero(counts) * counts[y]))


def _f1(positive: int | None) -> Rows:
    """Return F1 of one class, or its mean over all classes that occur."""

    def rows(y: np.ndarray, predicted: np.ndarray, probability: np.ndarray | None) -> np.ndarray:
        classes = np.unique(np.concatenate([y, predicted])) if positive is None else [positive]
        return np.asarray(np.mean([_f1_of_class(y == k, predicted == k) for k in classes], axis=0))

    return rows


def _f1_of_class(y: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    marked = y.astype(float) + predicted
    if not marked.any():
        return np.zeros(len(y))
    value = 2 * (y & predicted).sum() / marked.sum()
    return np.asarray(value + (2.0 * (y & predicted) - value * marked) / marked.mean())


def _auc(y: np.ndarray, predicted: np.ndarray, probability: np.ndarray | None) -> np.ndarray:
    """Return placement values (DeLong); a period with one class counts as 0.5."""
    assert probability is not None
    score, positive = probability[:, 1], y == 1
    n, ones = len(y), int(positive.sum())
    if ones in (0, n):
        return np.full(n, 0.5)
    placement = np.empty(n)
    overall = rankdata(score)
    placement[positive] = (overall[positive] - rankdata(score[positive])) / (n - ones)
    placement[~positive] = 1 - (overall[~positive] - rankdata(score[~positive])) / ones
    value = placement[positive].mean()
    return np.asarray(value + (placement - value) * np.where(positive, n / ones, n / (n - ones)))


def _average_precision(y: np.ndarray, predicted: np.ndarray, probability: np.ndarray | None) -> np.ndarray:
    """Return the precision at the rank of each positive row, weighted; ties share the worst rank of their group."""
    assert probability is not None
    score, positive = probability[:, 1], y == 1
    if not positive.any():
        return np.zeros(len(y))
    rank = rankdata(-score, "max")
    above = np.searchsorted(np.sort(-score[positive]), -score, side="right")
    return np.asarray(np.where(positive, above / rank, 0.0) / positive.mean())


def _log_loss(y: np.ndarray, predicted: np.ndarray, probability: np.ndarray | None) -> np.ndarray:
    assert probability is not None
    return log_loss(probability, y)


def _brier(y: np.ndarray, predicted: np.ndarray, probability: np.ndarray | None) -> np.ndarray:
    assert probability is not None
    error = (probability**2).sum(axis=1) - 2 * probability[np.arange(len(y)), y] + 1
    return np.asarray(error / 2 if probability.shape[1] == 2 else error)


def _rmse(y: np.ndarray, predicted: np.ndarray, probability: np.ndarray | None) -> np.ndarray:
    squares = (predicted - y) ** 2
    value = math.sqrt(float(squares.mean()))
    return np.asarray(value + (squares - value**2) / (2 * value)) if value else squares


def _mae(y: np.ndarray, predicted: np.ndarray, probability: np.ndarray | None) -> np.ndarray:
    return np.asarray(np.abs(predicted - y))


def _r2(y: np.ndarray, predicted: np.ndarray, probability: np.ndarray | None) -> np.ndarray:
    """Return 1 - squared error / variance of the period; a constant period counts as 0."""
    variance = float(y.var())
    return np.asarray(1 - (predicted - y) ** 2 / variance) if variance else np.zeros(len(y))


CLASS_METRICS = {
    "accuracy": Metric("accuracy", "accuracy", _accuracy),
    "balanced": Metric("balanced", "balanced accuracy", _balanced),
    "f1": Metric("f1", "F1", _f1(None)),
    "auc": Metric("auc", "AUC", _auc, probabilities=True),
    "average-precision": Metric("average-precision", "average precision", _average_precision, probabilities=True),
    "log-loss": Metric("log-loss", "log loss", _log_loss, False, "plain", True),
    "brier": Metric("brier", "Brier score", _brier, False, "plain", True),
}
NUMBER_METRICS = {
    "rmse": Metric("rmse", "RMSE", _rmse, False, "target"),
    "mae": Metric("mae", "mean absolute error", _mae, False, "target"),
    "r2": Metric("r2", "R²", _r2, unit="plain"),
}
TWO_CLASSES = {"auc", "average-precision"}


def default_metric(task: Task, y: np.ndarray, probabilities: bool) -> str:
    """Return RMSE for numbers; accuracy for balanced classes, AUC for two unbalanced ones, else balanced accuracy."""
    if not isinstance(task, Classification):
        return "rmse"
    shares = np.bincount(y) / len(y)
    if len(task.classes) == 2:
        return "accuracy" if shares.min() >= RARE else "auc" if probabilities else "balanced"
    return "balanced" if shares.max() > DOMINANT else "accuracy"


def choose_metrics(
    names: Sequence[str | UserMetric], task: Task, y: np.ndarray, probabilities: bool, labels: np.ndarray | None
) -> tuple[Metric, ...]:
    """Return the metrics with these names; the default one if there are none. The first one decides."""
    chosen = [_named(name, task, y, labels) for name in names or [default_metric(task, y, probabilities)]]
    for metric in chosen:
        if metric.probabilities and not probabilities:
            raise UserError(
                f"metric '{metric.name}' needs class probabilities, and the model gives none (a log: --probability)"
            )
    return tuple(chosen)


def _named(name: str | UserMetric, task: Task, y: np.ndarray, labels: np.ndarray | None) -> Metric:
    if not isinstance(name, str):
        return _user_metric(getattr(name, "__name__", "metric"), name, labels)
    if ":" in name:
        return _user_metric(name, user_code.load("metric", name)[0], labels)
    classes = isinstance(task, Classification)
    known, other = (CLASS_METRICS, NUMBER_METRICS) if classes else (NUMBER_METRICS, CLASS_METRICS)
    if name in other:
        kind = "numbers" if classes else "classes"
        raise UserError(f"metric '{name}' is for {kind}; for this target use {', '.join(known)}")
    if name not in known:
        raise unknown_name("metric", name, known, " (or module:function)")
    two = isinstance(task, Classification) and len(task.classes) == 2
    if name in TWO_CLASSES and not two:
        raise UserError(f"metric '{name}' needs a target with two classes; use balanced, f1 or log-loss")
    if name == "f1" and two:
        positive = int(np.bincount(y, minlength=2).argmin())
        title = "F1" if labels is None else f"F1 of '{labels[positive]}'"
        return Metric("f1", title, _f1(positive))
    return known[name]


def _user_metric(name: str, function: UserMetric, labels: np.ndarray | None) -> Metric:
    """Return the metric of a function.

    A higher value is better, unless the function has an attribute `lower_is_better` that is true.
    """
    if not callable(function):
        raise UserError(f"metric '{name}' is not a function of the truth and the prediction")
    try:
        takes_probabilities = len(inspect.signature(function).parameters) > 2
    except ValueError as error:
        raise UserError(f"metric '{name}' is not a function of the truth and the prediction: {error}") from error

    def value(y: np.ndarray, predicted: np.ndarray, probability: np.ndarray | None) -> float:
        truth, answer = (y, predicted) if labels is None else (labels[y], labels[predicted])
        try:
            return float(function(truth, answer, probability) if takes_probabilities else function(truth, answer))
        except Exception as error:
            raise UserError(f"metric '{name}' failed on {len(y)} rows: {error}") from error

    def rows(y: np.ndarray, predicted: np.ndarray, probability: np.ndarray | None) -> np.ndarray:
        whole, group = value(y, predicted, probability), np.arange(len(y)) % min(GROUPS, len(y))
        count = group.max() + 1
        without = []
        for k in range(count):
            kept = group != k
            without.append(value(y[kept], predicted[kept], None if probability is None else probability[kept]))
        influence = (count - 1) * (whole - np.array(without))[group]
        return np.asarray(whole + influence - influence.mean())

    higher = not getattr(function, "lower_is_better", False)
    return Metric(name, name.rpartition(":")[2], rows, higher, "plain", takes_probabilities and labels is not None)
