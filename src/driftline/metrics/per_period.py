"""One number per training period, computed from the later periods."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from driftline.errors import UserError, unknown_name
from driftline.metrics import metric
from driftline.types import JsonObject, Score

PAPER = "Iovine, Ziffer, Della Valle 2026, Tracking Adaptation Time"
TOLERANCE = 1e-12  # .36 / .40 and .90 are equal up to rounding


@dataclass(frozen=True, eq=False)
class PerStep:
    """One number per training period t (last axis), NaN where undefined; behaves as an array.

    >>> result = PerStep(np.array([0.5, 0.7, np.nan]))
    >>> float(result.mean), float(result.minimum), len(result)
    (0.6, 0.5, 3)
    """

    values: np.ndarray

    @property
    def counted_values(self) -> np.ndarray:
        """The values that the summaries are taken over, NaN where a t is left out."""
        return self.values

    @property
    def mean(self) -> Score:
        """Mean over the t that count, one per leading index; NaN if there are none."""
        return masked_mean(self.counted_values, ~np.isnan(self.counted_values))

    @property
    def minimum(self) -> Score:
        """Smallest over the t that count, one per leading index; NaN if there are none."""
        return np.fmin.reduce(self.counted_values, axis=-1, initial=np.nan)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.values, dtype=dtype, copy=copy)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: Any) -> Score:
        return self.values[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)


@dataclass(frozen=True, eq=False)
class Horizon(PerStep):
    """A number of steps per t; `censored` where the end of the data, not an event, set it.

    `counted` tells which t enter the summaries. With a `sentinel` (DH) a censored value is NaN, and `paper`
    and the summaries put the sentinel in its place; without (SH) it is the number of steps survived so far.

    >>> result = Horizon(np.array([2.0, np.nan]), np.array([False, True]), np.array([True, True]), sentinel=7)
    >>> result.paper, float(result.mean)
    (array([2., 7.]), 4.5)
    """

    censored: np.ndarray
    counted: np.ndarray
    sentinel: int | None = None

    @property
    def paper(self) -> np.ndarray:
        """The values as the paper prints them: censored ones are the sentinel."""
        return self.values if self.sentinel is None else np.where(self.censored, self.sentinel, self.values)

    @property
    def counted_values(self) -> np.ndarray:
        return np.where(self.counted, self.paper, np.nan)


def accuracies(A: ArrayLike) -> np.ndarray:
    """Return the input as square matrices of fractions, or raise a clear error."""
    try:
        A = np.asarray(A, dtype=float)
    except (TypeError, ValueError) as error:
        raise UserError(f"accuracies must be a matrix of numbers, NaN where not evaluated: {error}") from error
    if A.ndim < 2 or A.shape[-1] != A.shape[-2] or A.size == 0:
        raise UserError(f"accuracies must be square, periods x periods (after any batch axes), not {A.shape}")
    wrong = A[(A < -TOLERANCE) | (A > 1 + TOLERANCE)]
    if wrong.size:
        raise UserError(f"accuracies are fractions from 0 to 1, found {wrong[0]:g}: divide percentages by 100")
    return A


def diagonal(A: np.ndarray) -> np.ndarray:
    """Return the diagonal as a row [..., 1, tau] that lines up with the columns."""
    return np.diagonal(A, axis1=-2, axis2=-1)[..., None, :]


def rows_by_age(A: np.ndarray) -> np.ndarray:
    """Return rows by age instead of date: [..., t, h] = A[..., t, t+h], NaN past the last period."""
    periods = np.arange(A.shape[-1])
    when = periods[:, None] + periods
    return np.where(when < len(periods), A[..., periods[:, None], when % len(periods)], np.nan)


def last_true(mask: np.ndarray) -> np.ndarray:
    """Return the last step, counted from 1, at which the mask is true; 0 if there is none."""
    steps: np.ndarray = mask * np.arange(1, mask.shape[-1] + 1)
    return np.asarray(steps.max(axis=-1, initial=0))


def usable_steps(evaluated: np.ndarray, horizon: int | None, partial: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return which steps [..., t, k] to use, and which rows t have enough of them."""
    if horizon is not None:
        check_positive("horizon", horizon)
    wanted = last_true(evaluated) if horizon is None else np.full(evaluated.shape[:-1], horizon)
    use = evaluated & (np.arange(1, evaluated.shape[-1] + 1) <= wanted[..., None])
    have = use.sum(axis=-1)
    return use, (have > 0) & (partial | (have == wanted))


def masked_mean(x: np.ndarray, use: np.ndarray, counted: np.ndarray | bool = True) -> Score:
    """Return the mean of the used entries of the last axis; NaN if there are none or the row is not counted."""
    count = use.sum(axis=-1)
    total = np.where(use, x, 0).sum(axis=-1)
    return np.where(counted & (count > 0), total / np.maximum(count, 1), np.nan)[()]


def check_positive(what: str, value: int) -> None:
    """Refuse anything but 1, 2, 3, ..."""
    if value < 1 or not float(value).is_integer():
        raise UserError(f"{what} must be a whole number of steps, at least 1, not {value}")


def example_maker(**settings: object) -> Callable[[np.random.Generator], JsonObject]:
    """Return a maker of example inputs: random accuracies of six periods, and these settings."""
    return lambda rng: {"A": np.where(np.tri(6, k=-1) > 0, np.nan, rng.uniform(0.3, 1.0, (6, 6))), **settings}


@metric(
    "ttr",
    formula="g(t,tau) = min(1, A[t,tau] / A[tau,tau])",
    paper=PAPER,
    example=example_maker(),
)
def transfer_ratio(A: ArrayLike, clip: bool = True) -> np.ndarray:
    """Return the temporal transfer ratio: accuracy of the model of t at tau relative to the model of tau.

    g(t, tau) = min(1, A[t,tau] / A[tau,tau]), unclipped with `clip=False`. Higher is better; 1 means that
    nothing was lost by being old. NaN below the diagonal, where not evaluated, and where the oracle is zero.

    >>> transfer_ratio([[0.8, 0.6], [np.nan, 0.75]])
    array([[1. , 0.8],
           [nan, 1. ]])
    """
    A = accuracies(A)
    oracle = diagonal(A)
    known = np.triu(np.ones(A.shape[-2:], dtype=bool)) & (oracle > TOLERANCE)
    ratio: np.ndarray = np.divide(A, oracle, out=np.full(A.shape, np.nan), where=known)
    return np.minimum(ratio, 1) if clip else ratio


def check_choice(what: str, name: str, known: tuple[str, ...]) -> None:
    """Refuse anything but one of the known names."""
    if name not in known:
        raise unknown_name(what, name, known)
