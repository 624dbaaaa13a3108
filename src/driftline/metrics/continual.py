"""Metrics of continual learning: accuracy on all tasks, forgetting, and transfer between tasks.

All start from the accuracies A[..., i, j] of the model after task i on held-out samples of task j, of T tasks, with any
leading axes. Where papers and codes differ, the definition here is that of the cited paper:

- Means over tasks leave out the task that has no value, so they divide by T - 1. GEM's code divides by T.
- Forgetting takes the best of the models before the last one. With the last one among them, as in some codes, it is
  never negative, and a task that got better counts as 0. First minus last accuracy is minus the backward transfer.
- Backward transfer compares the last model with the model of each task; others average over all pairs i > j.
- Forward transfer subtracts the accuracy of the untrained model; others average over the pairs i < j without it. Where
  each task has classes of its own, no model knows a later one, and it says nothing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from driftline.errors import UserError
from driftline.metrics import metric
from driftline.metrics.per_period import PerStep, accuracies
from driftline.types import JsonObject

GEM = "Lopez-Paz and Ranzato 2017, Gradient Episodic Memory"
CHAUDHRY = "Chaudhry et al. 2018, Riemannian Walk"
ICARL = "Rebuffi et al. 2017, iCaRL"


def _example(rng: np.random.Generator) -> JsonObject:
    return {"A": rng.uniform(0, 1, (5, 5))}


def _tasks(A: ArrayLike) -> np.ndarray:
    checked = accuracies(A)
    if checked.shape[-1] < 2:
        raise UserError("metrics of continual learning need at least two tasks")
    return checked


@metric(
    "average-accuracy",
    title="average accuracy (ACC)",
    formula="ACC = mean_j A[T,j]",
    bounds=(0, 1),
    paper=GEM,
    example=_example,
)
def average_accuracy(A: ArrayLike) -> PerStep:
    """Return the accuracy of the last model on each task; its mean is the average accuracy. Higher is better.

    >>> result = average_accuracy([[0.90, 0.30, 0.20], [0.70, 0.85, 0.35], [0.60, 0.80, 0.95]])
    >>> result.values, round(float(result.mean), 4)
    (array([0.6 , 0.8 , 0.95]), 0.7833)
    """
    return PerStep(_tasks(A)[..., -1, :].copy())


@metric(
    "average-incremental-accuracy",
    title="average incremental accuracy (AIA)",
    formula="AIA = mean_i mean_(j<=i) A[i,j]",
    bounds=(0, 1),
    paper=ICARL,
    example=_example,
)
def average_incremental_accuracy(A: ArrayLike) -> PerStep:
    """Return the mean accuracy of each model on the tasks so far, each task counting alike. Higher is better.

    >>> result = average_incremental_accuracy([[0.90, 0.30, 0.20], [0.70, 0.85, 0.35], [0.60, 0.80, 0.95]])
    >>> result.values.round(4), round(float(result.mean), 4)
    (array([0.9   , 0.775 , 0.7833]), 0.8194)
    """
    A = _tasks(A)
    seen = np.tri(A.shape[-1])
    return PerStep((A * seen).sum(axis=-1) / seen.sum(axis=-1))


@metric(
    "forgetting",
    formula="F = 1/(T-1) sum_(j<T) (max_(i<T) A[i,j] - A[T,j])",
    better="lower",
    bounds=(-1, 1),
    paper=CHAUDHRY,
    example=_example,
)
def forgetting(A: ArrayLike) -> PerStep:
    """Return what the last model lost on each task, against the best model before it. Lower is better.

    >>> result = forgetting([[0.90, 0.30, 0.20], [0.70, 0.85, 0.35], [0.60, 0.80, 0.95]])
    >>> result.values.round(4), round(float(result.mean), 4)
    (array([0.3 , 0.05,  nan]), 0.175)
    """
    A = _tasks(A)
    lost = A[..., :-1, :].max(axis=-2) - A[..., -1, :]
    lost[..., -1] = np.nan
    return PerStep(lost)


@metric(
    "backward-transfer",
    title="backward transfer (BWT)",
    formula="BWT = 1/(T-1) sum_(j<T) (A[T,j] - A[j,j])",
    bounds=(-1, 1),
    paper=GEM,
    example=_example,
)
def backward_transfer(A: ArrayLike) -> PerStep:
    """Return what the last model gained on each task since that task. Higher is better; below 0, tasks are forgotten.

    >>> result = backward_transfer([[0.90, 0.30, 0.20], [0.70, 0.85, 0.35], [0.60, 0.80, 0.95]])
    >>> result.values.round(4), round(float(result.mean), 4)
    (array([-0.3 , -0.05,   nan]), -0.175)
    """
    A = _tasks(A)
    gained = A[..., -1, :] - np.diagonal(A, axis1=-2, axis2=-1)
    gained[..., -1] = np.nan
    return PerStep(gained)


@metric(
    "forward-transfer",
    title="forward transfer (FWT)",
    formula="FWT = 1/(T-1) sum_(j>1) (A[j-1,j] - b[j]), b[j] of the model before the first task",
    bounds=(-1, 1),
    paper=GEM,
    example=lambda rng: {**_example(rng), "baseline": rng.uniform(0, 1, 5)},
)
def forward_transfer(A: ArrayLike, baseline: ArrayLike) -> PerStep:
    """Return what the tasks before each task gained on it, against the model before the first task. Higher is better.

    >>> A = [[0.90, 0.30, 0.20], [0.70, 0.85, 0.35], [0.60, 0.80, 0.95]]
    >>> result = forward_transfer(A, baseline=[0.10, 0.20, 0.25])
    >>> result.values.round(4), round(float(result.mean), 4)
    (array([nan, 0.1, 0.1]), 0.1)
    """
    A, b = _tasks(A), np.asarray(baseline, float)
    before = np.diagonal(A, offset=1, axis1=-2, axis2=-1)
    gained = np.full(np.broadcast_shapes(A.shape[:-1], b.shape), np.nan)
    gained[..., 1:] = before - b[..., 1:]
    return PerStep(gained)
