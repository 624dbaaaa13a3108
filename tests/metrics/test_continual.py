"""Metrics of continual learning: a worked example, direct loops, and versions that other codes have."""

from __future__ import annotations

import numpy as np
import pytest

from driftline import registry
from driftline.errors import UserError
from driftline.metrics.continual import (
    average_accuracy,
    average_incremental_accuracy,
    backward_transfer,
    forgetting,
    forward_transfer,
)
from driftline.metrics.temporal import in_distribution

A = np.array([[0.90, 0.30, 0.20], [0.70, 0.85, 0.35], [0.60, 0.80, 0.95]])
B = np.array([0.10, 0.20, 0.25])
GAIN = np.where(np.array([[0, 0, 0], [0, 0, 0], [0, 1, 0]]), 0.90, A)  # the second task got better at the end


def test_the_worked_example() -> None:
    found = [
        average_accuracy(A).mean,
        in_distribution(A).mean,
        backward_transfer(A).mean,
        forward_transfer(A, B).mean,
        forgetting(A).mean,
        average_incremental_accuracy(A).mean,
    ]
    assert np.round(found, 4).tolist() == [0.7833, 0.9, -0.175, 0.1, 0.175, 0.8194]


def test_what_other_codes_compute_differs() -> None:
    """GEM's code divides by T; some take pairs, some the last model into the maximum, some all tasks at all times."""
    below, above = np.tril_indices(3, -1), np.triu_indices(3, 1)
    gains = A[-1] - np.diag(A)
    assert gains.sum() / 3 == pytest.approx(-0.1167, abs=1e-4)
    pairs = np.mean([A[i, j] - A[j, j] for i, j in zip(*below, strict=True)])
    assert pairs == pytest.approx(-0.1833, abs=1e-4)
    assert A[above].mean() == pytest.approx(0.2833, abs=1e-4)
    assert A.mean() == pytest.approx(0.6278, abs=1e-4)
    wrong = [gains.sum() / 3, pairs, A[above].mean(), (A.max(axis=0) - A[-1]).mean(), A.mean()]
    right = [one.mean for one in (backward_transfer(A), forward_transfer(A, B), forgetting(A), average_accuracy(A))]
    assert not set(np.round(wrong, 4).tolist()) & set(np.round(right, 4).tolist())


def test_a_task_that_got_better_has_negative_forgetting() -> None:
    assert forgetting(GAIN).values[:2] == pytest.approx([0.3, -0.05])
    assert forgetting(GAIN).mean == pytest.approx(0.125)
    with_the_last = np.mean((GAIN.max(axis=0) - GAIN[-1])[:-1])
    assert with_the_last == pytest.approx(0.15), "the maximum over all models is never below the last"
    assert backward_transfer(GAIN).mean == pytest.approx(-0.125)


def test_the_best_model_may_precede_the_task() -> None:
    """The maximum is over all models but the last, also those that have not met the task."""
    matrix = np.array([[0.9, 0.8, 0.1], [0.8, 0.6, 0.2], [0.7, 0.5, 0.9]])
    assert forgetting(matrix).values[:2] == pytest.approx([0.2, 0.3])
    assert backward_transfer(matrix).values[:2] == pytest.approx([-0.2, -0.1])


def test_against_loops_and_in_stacks() -> None:
    rng = np.random.default_rng(0)
    stack, baselines = rng.random((4, 6, 6)), rng.random((4, 6))
    for k, (R, b) in enumerate(zip(stack, baselines, strict=True)):
        T = len(R)
        assert average_accuracy(stack).mean[k] == pytest.approx(sum(R[T - 1][j] for j in range(T)) / T)
        lost = sum(max(R[i][j] for i in range(T - 1)) - R[T - 1][j] for j in range(T - 1)) / (T - 1)
        assert forgetting(stack).mean[k] == pytest.approx(lost)
        back = sum(R[T - 1][j] - R[j][j] for j in range(T - 1)) / (T - 1)
        assert backward_transfer(stack).mean[k] == pytest.approx(back)
        forward = sum(R[j - 1][j] - b[j] for j in range(1, T)) / (T - 1)
        assert forward_transfer(stack, baselines).mean[k] == pytest.approx(forward)
        each = [sum(R[i][j] for j in range(i + 1)) / (i + 1) for i in range(T)]
        assert average_incremental_accuracy(stack).values[k] == pytest.approx(each)


def test_metadata_and_refusals() -> None:
    names = ("average-accuracy", "average-incremental-accuracy", "backward-transfer", "forward-transfer")
    assert {registry.get("metric", name).better for name in names} == {"higher"}
    assert registry.get("metric", "forgetting").better == "lower"
    assert registry.get("metric", "forgetting").bounds == (-1, 1)
    with pytest.raises(UserError, match="at least two tasks"):
        forgetting([[0.5]])
