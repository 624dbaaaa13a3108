"""Horizons in noise: no drift is not called drift, and intervals hold the horizon of the true accuracies."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from driftline.metrics.horizons import drift_horizon, false_alarm_rate, horizon_bounds, stability_horizon

nan = np.nan
WORKED = np.array([[0.80, 0.72, 0.45, 0.60], [nan, 0.75, 0.66, 0.63], [nan, nan, 0.60, 0.80], [nan, nan, nan, 0.70]])
DRIFTS = partial(drift_horizon, epsilon=0.0, threshold=0.15, horizon=10)
LASTS = partial(stability_horizon, delta=0.9)


def without_drift(level, rng, periods=40, later=440, held_out=44):
    """Accuracies of models that are right with the same chance at all times, and their standard errors."""
    n = np.where(np.eye(periods, dtype=bool), held_out, later)
    A = rng.binomial(n, level, (periods, periods)) / n
    p = (A * n + 2) / (n + 4)
    return np.where(np.tri(periods, k=-1) > 0, nan, A), np.sqrt(p * (1 - p) / n)


def ended(found):
    return (found.counted & ~found.censored).sum() / found.counted.sum()


def test_the_allowance_on_the_worked_example():
    """|A - A[t,t]| less .04 less one standard error of .03 (both cells .03 / sqrt 2): row 0 .01, .29; row 2 .13."""
    found = drift_horizon(WORKED, 0.04, 0.15, 3, partial=True, error=0.03 / np.sqrt(2), allowance=1.0)
    assert_array_equal(found.paper, [2, 4, 4, nan])
    assert_array_equal(drift_horizon(WORKED, 0.04, 0.15, 3, partial=True).paper, [2, 4, 1, nan])
    # row 0: .45 is .03 short of .8 * .60; its standard error is e * sqrt(1 + .64), so .03 / 1.2806 = .02343 covers it
    lasting = [stability_horizon(WORKED, 0.8, error=e, allowance=1.0).values[0] for e in (0.0234, 0.0235)]
    assert lasting == [1, 3]


def test_errors_of_cells_are_those_of_their_own_difference():
    error = np.full((4, 4), 0.0)
    error[2, 2] = 0.1  # the oracle of period 2 enters g(0, 2), and A[2, 2] the drift of row 2 only
    assert_array_equal(stability_horizon(WORKED, 0.8, error=error, allowance=1.0).values, [3, 2, 1, 0])
    assert_array_equal(
        drift_horizon(WORKED, 0.04, 0.15, 3, partial=True, error=error, allowance=1.0).paper[:3], [2, 4, 4]
    )


@pytest.mark.parametrize("level", [0.95, 0.85, 0.7])
def test_no_drift_is_not_called_drift(level):
    rng = np.random.default_rng(0)
    worlds = [without_drift(level, rng, periods=24) for _ in range(30)]
    assert np.mean([ended(DRIFTS(A)) for A, _ in worlds]) > 0.6, "the paper's definition"
    assert np.mean([ended(DRIFTS(A, error=e, allowance=1.96)) for A, e in worlds]) < 0.05
    assert np.mean([ended(LASTS(A, error=e, allowance=1.96)) for A, e in worlds]) < 0.05
    if level <= 0.85:
        assert np.mean([ended(LASTS(A)) for A, _ in worlds]) > 0.25, "the paper's definition"


@pytest.mark.parametrize("allowance", [0.0, 1.96])
@pytest.mark.parametrize("compute", [DRIFTS, LASTS])
def test_the_false_alarm_rate_is_that_of_worlds_without_drift(compute, allowance):
    rng = np.random.default_rng(1)
    worlds = [without_drift(0.75, rng, periods=24) for _ in range(60)]
    true = np.mean([ended(compute(A, error=e, allowance=allowance)) for A, e in worlds])
    output = [false_alarm_rate(partial(compute, error=e, allowance=allowance), A, e) for A, e in worlds[:5]]
    assert np.mean(output) == pytest.approx(true, abs=0.08)


def test_real_drift_is_still_found():
    A = np.full((40, 40), 0.9)
    A[:15, 20:] = 0.55
    assert_array_equal(DRIFTS(A, error=0.05, allowance=1.96).paper[10:15], [10, 9, 8, 7, 6])
    assert_array_equal(LASTS(A, error=0.05, allowance=1.96).values[10:15], [9, 8, 7, 6, 5])


@pytest.mark.parametrize("compute", [DRIFTS, LASTS])
@pytest.mark.parametrize("slope", [0.0, 0.02])
def test_bounds_hold_the_horizon_of_the_true_accuracies(compute, slope):
    rng, inside = np.random.default_rng(3), []
    t, tau = np.indices((20, 20))
    true = np.where(t > tau, nan, 0.85 - slope * (tau - t))
    n = np.where(np.eye(20, dtype=bool), 40, 400)
    for _ in range(40):
        A = np.where(t > tau, nan, rng.binomial(n, np.nan_to_num(true)) / n)
        p = (np.nan_to_num(A) * n + 2) / (n + 4)
        found, truth = horizon_bounds(compute, A, np.sqrt(p * (1 - p) / n)), compute(true)
        assert found.mean.low <= compute(A).mean <= found.mean.high
        each = (found.per_model.low <= truth.paper) & (truth.paper <= found.per_model.high)
        inside.append([each[truth.counted].mean(), found.mean.low <= truth.mean <= found.mean.high])
    assert (np.mean(inside, axis=0) >= 0.93).all(), np.mean(inside, axis=0)


def test_nothing_known_has_no_rate():
    assert np.isnan(false_alarm_rate(LASTS, [[nan]], [[nan]]))
