"""Why entropy minimisation collapses: two classes in the plane, batch norm and a logistic regression.

The experiment of Appendix A of Press et al., "RDumb", NeurIPS 2023. Two classes lie at (-1, 0) and (1, 0), with
variances 1 and 0.03. A corruption turns the plane by -20 degrees and adds noise, nearly at right angles to the line
between the classes, with variances 0.25 and 4 (condition 1) or 25 (condition 2), turned by -30 degrees. All is then
turned by -45 degrees. The model is batch norm without shift (eps = 0), a linear layer without bias, a sigmoid; it is
trained on the clean classes, then its two scales go down the gradient of the entropy on the corrupted ones. Condition 1
gets better and stays so; condition 2 gets better, moves on and falls below where it started. The scales grow in both.

>>> start, end = by_entropy(1, steps=600, every=600)["accuracy"]
>>> start < end
True

This is no stream of answers to be recorded but 60,000 full-batch steps of two numbers, so it is computed here as a
table. By default expectations are those of infinitely many points, exact but for rounding: along the model's output the
classes are normal, so each step is a sum over a line. `samples` draws points instead, as the paper does with 300,000.

The paper leaves open how its matrices act. Here points are row vectors, a rotation by an angle multiplies them from the
right by ((cos, sin), (-sin, cos)), and matrices printed as squares are variances. Of the four readings that were tried,
this and its mirror image behave as the paper says. Training starts at weights 0, and samples are symmetric: 3,000 steps
do not converge along the axis with little variance, and chance would decide about what follows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pandas as pd
from scipy.special import expit, ndtr

from driftline.errors import UserError, unknown_name
from driftline.seeds import Seed

NOISE = {1: (0.25, 4.0), 2: (0.25, 25.0)}
"""The variances of the noise that each condition adds."""
SPREAD = (1.0, 0.03)
SIGNAL_ROTATION, NOISE_ROTATION, TOTAL_ROTATION = -math.pi / 9, -math.pi / 6, -math.pi / 4
SIGNS = np.array([(1, *signs) for signs in itertools.product((1, -1), repeat=3)])
"""By which a draw is multiplied to make eight; the mirror image in the other class makes sixteen."""

NODES = np.linspace(-8.5, 8.5, 600)
"""In deviations from the mean; the trapezoidal rule over them is exact to rounding for what is averaged here."""
WEIGHTS = np.exp(-(NODES**2) / 2) / np.exp(-(NODES**2) / 2).sum()

Curve = Callable[[np.ndarray], np.ndarray]


class ClassDistribution(Protocol):
    """The class at (1, 0), each feature divided by its deviation; the other class is its mirror image.

    By that symmetry means are zero, and both classes give the same accuracy, entropy and gradient.
    """

    def mean_of(self, curve: Curve, direction: np.ndarray) -> float:
        """The mean of curve(z) with z = slope . x."""

    def mean_along(self, curve: Curve, direction: np.ndarray) -> np.ndarray:
        """The mean of curve(z) x."""

    def accuracy(self, direction: np.ndarray) -> float:
        """The share with z > 0."""


@dataclass(frozen=True)
class Points:
    """A class of drawn points, one per row."""

    x: np.ndarray

    def mean_of(self, curve: Curve, direction: np.ndarray) -> float:
        return float(curve(self.x @ direction).mean())

    def mean_along(self, curve: Curve, direction: np.ndarray) -> np.ndarray:
        mean: np.ndarray = curve(self.x @ direction) @ self.x / len(self.x)
        return mean

    def accuracy(self, direction: np.ndarray) -> float:
        return float((self.x @ direction > 0).mean())


@dataclass(frozen=True)
class Normal:
    """A class of infinitely many points; along z they are normal."""

    mean: np.ndarray
    covariance: np.ndarray

    def mean_of(self, curve: Curve, direction: np.ndarray) -> float:
        centre, deviation = self._along(direction)
        return float(WEIGHTS @ curve(centre + deviation * NODES))

    def mean_along(self, curve: Curve, direction: np.ndarray) -> np.ndarray:
        centre, deviation = self._along(direction)
        weighted = WEIGHTS * curve(centre + deviation * NODES)
        # The mean of x where z is so many deviations from its own mean: linear in them.
        per_deviation = self.covariance @ direction / deviation if deviation else np.zeros(2)
        mean: np.ndarray = weighted.sum() * self.mean + (weighted @ NODES) * per_deviation
        return mean

    def accuracy(self, direction: np.ndarray) -> float:
        centre, deviation = self._along(direction)
        return float(ndtr(centre / deviation))

    def _along(self, direction: np.ndarray) -> tuple[float, float]:
        return float(direction @ self.mean), math.sqrt(direction @ self.covariance @ direction)


def rotation(angle: float) -> np.ndarray:
    """Multiplies row vectors from the right."""
    return np.array([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])


def population_classes(noise: tuple[float, float]) -> tuple[Normal, Normal]:
    """The clean and the corrupted class, of infinitely many points."""
    signal, noisy, all_ = rotation(SIGNAL_ROTATION), rotation(NOISE_ROTATION), rotation(TOTAL_ROTATION)
    centre, spread = np.array([1.0, 0.0]), np.diag(SPREAD)
    corrupted = signal.T @ spread @ signal + noisy.T @ np.diag(noise) @ noisy
    clean = _scaled_normal(centre @ all_, all_.T @ spread @ all_)
    return clean, _scaled_normal(centre @ signal @ all_, all_.T @ corrupted @ all_)


def _scaled_normal(mean: np.ndarray, covariance: np.ndarray) -> Normal:
    deviation = np.sqrt(np.diag(covariance) + mean**2)  # of both classes together
    return Normal(mean / deviation, covariance / np.outer(deviation, deviation))


def sampled_classes(noise: tuple[float, float], samples: int, seed: Seed) -> tuple[Points, Points]:
    """The clean and the corrupted class from `samples` points of both classes, symmetric in every direction."""
    if samples < 16:
        raise UserError(f"a symmetric sample has 16 points or more, not {samples}")
    draws = seed.child("points").numpy().standard_normal((samples // 16, 4))
    draws = (draws * SIGNS[:, None]).reshape(-1, 4)
    x = draws[:, :2] * np.sqrt(SPREAD) + [1.0, 0.0]
    corrupted = x @ rotation(SIGNAL_ROTATION) + draws[:, 2:] * np.sqrt(noise) @ rotation(NOISE_ROTATION)
    return _scaled_points(x @ rotation(TOTAL_ROTATION)), _scaled_points(corrupted @ rotation(TOTAL_ROTATION))


def _scaled_points(x: np.ndarray) -> Points:
    return Points(x / np.sqrt((x**2).mean(axis=0)))


def train_source(clean: ClassDistribution) -> tuple[np.ndarray, np.ndarray]:
    """Weights and scales after 3,000 steps on the cross-entropy, at rates 0.1, 0.01 and 0.001."""
    weights, scales = np.zeros(2), np.ones(2)
    for step in range(3000):
        direction = clean.mean_along(lambda z: -expit(-z), weights * scales)
        rate = 0.1 ** (1 + step // 1000)
        weights, scales = weights - rate * direction * scales, scales - rate * direction * weights
    return weights, scales


def minimize_entropy(
    condition: int, *, samples: int | None = None, seed: Seed = Seed(0), steps: int = 60_000, record_every: int = 100
) -> pd.DataFrame:
    """What becomes of the model as its scales go down the gradient of the entropy at rate 0.01.

    One row per `every` steps: condition, step, accuracy, entropy and the length of the vector of scales.
    """
    if condition not in NOISE:
        raise unknown_name("condition", str(condition), [str(known) for known in NOISE])
    noise = NOISE[condition]
    clean: ClassDistribution
    corrupted: ClassDistribution
    clean, corrupted = population_classes(noise) if samples is None else sampled_classes(noise, samples, seed)
    weights, scales = train_source(clean)
    rows = []
    for step in range(steps + 1):
        if step % record_every == 0:
            direction = weights * scales
            state = (
                corrupted.accuracy(direction),
                corrupted.mean_of(entropy, direction),
                float(np.linalg.norm(scales)),
            )
            rows.append((condition, step, *state))
        scales = scales - 0.01 * weights * corrupted.mean_along(entropy_derivative, weights * scales)
    return pd.DataFrame(rows, columns=["condition", "step", "accuracy", "entropy", "scales"])


def best_linear(condition: int) -> float:
    """The accuracy of the best line through the middle, on infinitely many corrupted points."""
    _, corrupted = population_classes(NOISE[condition])
    return corrupted.accuracy(np.linalg.solve(corrupted.covariance, corrupted.mean))


def entropy(z: np.ndarray) -> np.ndarray:
    """Of the answer sigmoid(z), in nats."""
    size = np.abs(z)
    nats: np.ndarray = np.log1p(np.exp(-size)) + size * expit(-size)
    return nats


def entropy_derivative(z: np.ndarray) -> np.ndarray:
    """How it changes with z: -z p (1 - p)."""
    p = expit(z)
    direction: np.ndarray = -z * p * (1 - p)
    return direction
