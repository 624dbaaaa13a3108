"""Loss after the best recalibration in each cell: what is left cannot be repaired without a new model.

Two classes: a + b * logit(p) with b >= 0, so that the ranking stays. Several classes: a temperature and a bias for each
class. Numbers: the regression of the target on the prediction, with a slope of 0 or more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

LIMITS = 0.001, 0.999  # of probabilities
STEPS, MAX_STEP = 12, 2.0
RIDGE_INTERCEPT, RIDGE_SLOPE = 0.1, 1.0


def log_loss(probability: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the log loss of each row; `probability`: (rows, classes)."""
    return np.asarray(-np.log(np.clip(probability[np.arange(len(y)), y], *LIMITS)))


@dataclass(frozen=True, eq=False)
class Recalibration:
    """A bias for each class and a slope of the log-probabilities."""

    bias: np.ndarray
    slope: float

    def apply(self, probability: np.ndarray) -> np.ndarray:
        """Return recalibrated class probabilities."""
        return _softmax(self.slope * np.log(np.clip(probability, *LIMITS)) + self.bias)


def fit_recalibration(probability: np.ndarray, y: np.ndarray) -> Recalibration:
    """Return the best recalibration of these rows."""
    scores, cell = np.log(np.clip(probability, *LIMITS)), np.zeros(len(y), int)
    if probability.shape[1] == 2:
        a, b = fit_binary(scores[:, 1] - scores[:, 0], y.astype(float), cell)
        return Recalibration(np.array([0.0, a[0]]), float(b[0]))
    bias, b = _fit_several(scores, y, cell, slope=True)
    return Recalibration(bias[0], float(b[0]))


def recalibrated_loss(probability: np.ndarray, y: np.ndarray, cell: np.ndarray, slope: bool = True) -> np.ndarray:
    """Return the log loss of each row after the best recalibration in its cell (0, 1, ...)."""
    probability = np.clip(probability, *LIMITS)
    if probability.shape[1] == 2:
        logit = np.log(probability[:, 1] / probability[:, 0])
        a, b = fit_binary(logit, y.astype(float), cell, slope)
        z = np.clip(a[cell] + b[cell] * logit, -30, 30)
        return np.asarray(np.logaddexp(0, np.where(y > 0, -z, z)))
    scores = np.log(probability)
    bias, b = _fit_several(scores, y, cell, slope)
    best = _softmax(b[cell][:, None] * scores + bias[cell])
    return np.asarray(-np.log(np.maximum(best[np.arange(len(y)), y], 1e-12)))


def fit_binary(logit: np.ndarray, y: np.ndarray, cell: np.ndarray, slope: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Return intercept and slope of each cell, by damped Newton steps in all cells at once."""
    size = int(cell.max()) + 1

    def sums(weights: np.ndarray) -> np.ndarray:
        return np.bincount(cell, weights, size)

    a, b = np.zeros(size), np.ones(size)
    for _ in range(STEPS):
        p = recalibrate_binary(logit, a[cell], b[cell])
        residual, curvature = y - p, p * (1 - p)
        grad_a = sums(residual) - RIDGE_INTERCEPT * a
        haa = sums(curvature) + RIDGE_INTERCEPT
        if not slope:
            a += np.clip(grad_a / haa, -MAX_STEP, MAX_STEP)
            continue
        grad_b = sums(residual * logit) - RIDGE_SLOPE * (b - 1)
        hab, hbb = sums(curvature * logit), sums(curvature * logit**2) + RIDGE_SLOPE
        determinant = haa * hbb - hab**2
        step_a = (hbb * grad_a - hab * grad_b) / determinant
        step_b = (haa * grad_b - hab * grad_a) / determinant
        step_a = np.where(b + step_b <= 0, grad_a / haa, step_a)
        a += np.clip(step_a, -MAX_STEP, MAX_STEP)
        b = np.maximum(0, b + np.clip(step_b, -MAX_STEP, MAX_STEP))
    return a, b


def recalibrate_binary(logit: np.ndarray, a: np.ndarray | float, b: np.ndarray | float) -> np.ndarray:
    """Return the recalibrated probability of the second class."""
    return np.asarray(1 / (1 + np.exp(-np.clip(a + b * logit, -30, 30))))


def _fit_several(scores: np.ndarray, y: np.ndarray, cell: np.ndarray, slope: bool) -> tuple[np.ndarray, np.ndarray]:
    """Fit biases by iterative scaling, which never overshoots, and the temperature by damped Newton steps, in turn."""
    size, classes = int(cell.max()) + 1, scores.shape[1]
    rows, member = np.arange(len(y)), (np.arange(size)[:, None] == cell).astype(float)
    seen = np.zeros((size, classes))
    np.add.at(seen, (cell, y), 1)
    bias, b = np.zeros((size, classes)), np.ones(size)
    for _ in range(STEPS):
        p = _softmax(b[cell][:, None] * scores + bias[cell])
        expected = member @ p
        bias += np.log((seen + RIDGE_INTERCEPT) / (expected + RIDGE_INTERCEPT))
        if not slope:
            continue
        p = _softmax(b[cell][:, None] * scores + bias[cell])
        mean = (p * scores).sum(axis=1)
        variance = (p * scores**2).sum(axis=1) - mean**2
        gradient = np.bincount(cell, scores[rows, y] - mean, size) - RIDGE_SLOPE * (b - 1)
        step = gradient / (np.bincount(cell, variance, size) + RIDGE_SLOPE)
        b = np.maximum(0, b + np.clip(step, -MAX_STEP / 4, MAX_STEP / 4))
    return bias, b


def _softmax(scores: np.ndarray) -> np.ndarray:
    shifted = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))


def fit_line(prediction: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Return slope, 0 or more, and intercept of the regression of numbers on their predictions.

    >>> fit_line(np.array([0.0, 1.0, 2.0]), np.array([1.0, 3.0, 5.0]))
    (2.0, 1.0)
    """
    centered = prediction - prediction.mean()
    variance = float((centered**2).mean())
    varies = variance > 1e-12 * max(1.0, float((prediction**2).mean()))
    slope = max(0.0, float((centered * y).mean()) / variance) if varies else 0.0
    return slope, float(y.mean() - slope * prediction.mean())


def recalibrated_squares(prediction: np.ndarray, y: np.ndarray, cell: np.ndarray, slope: bool = True) -> np.ndarray:
    """Return the squared error of each row after the best regression of y on the prediction in its cell."""
    size = int(cell.max()) + 1
    n = np.maximum(np.bincount(cell, minlength=size), 1)

    def mean(values: np.ndarray) -> np.ndarray:
        return np.asarray(np.bincount(cell, values, size) / n)

    x, target = prediction - mean(prediction)[cell], y - mean(y)[cell]
    variance = mean(x**2)
    varies = variance > 1e-12 * max(1.0, float(np.var(prediction)))
    best = np.where(varies, mean(x * target) / np.where(varies, variance, 1.0), 0)
    b = np.maximum(0, best) if slope else np.ones(size)
    return np.asarray((target - b[cell] * x) ** 2)
