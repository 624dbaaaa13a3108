"""Temporal metrics against slow, obvious loops, and batches against one matrix at a time."""

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal

from driftline.metrics.horizons import drift_horizon, stability_horizon
from driftline.metrics.temporal import (
    adaptation_score,
    in_distribution,
    out_of_distribution,
    transfer_ratio,
    worst_future,
)

from .accuracy_matrices import ALL, CLIPPINGS, nan


@st.composite
def matrices(draw):
    periods = draw(st.integers(1, 6))
    cell = st.sampled_from([nan, 0.0, 1.0]) | st.integers(0, 40).map(lambda i: i / 40) | st.floats(0, 1)
    return draw(arrays(float, (periods, periods), elements=cell))


def slow_ratio(A, t, tau):
    return nan if tau < t or not A[tau, tau] > 1e-12 else A[t, tau] / A[tau, tau]


def slow_window(evaluated, horizon, partial):
    """The steps to average, or none: `evaluated` lists whether step 1, 2, ... is there."""
    steps = [k for k, there in enumerate(evaluated, 1) if there and (horizon is None or k <= horizon)]
    needed = horizon if horizon is not None else max(steps, default=0)
    return steps if partial or len(steps) == needed else []


def slow_sh(A, t, delta, gaps):
    best = 0
    for h in range(1, len(A) - t):
        if slow_ratio(A, t, t + h) >= delta - 1e-12:
            best = h
        elif gaps == "stop":
            break
    return nan if np.isnan(A[t, t:]).all() else best


def slow_dh(A, t, epsilon, threshold, horizon, direction, partial):
    there = [not math.isnan(A[t, t] + A[t, tau]) for tau in range(t + 1, len(A))]
    steps = slow_window(there, horizon, partial)
    total = 0.0
    for h in steps:
        change = A[t, t + h] - A[t, t]
        total = max(0.0, total + (abs(change) if direction == "both" else -change) - epsilon)
        if total > threshold + 1e-12:
            return h
    return horizon + 1 if steps else nan


def slow_tas(A, t, horizon, clipping, partial):
    there = [not math.isnan(A[t, tau] + A[tau, tau]) for tau in range(t + 1, len(A))]
    pairs = [(A[t, t + k], A[t + k, t + k]) for k in slow_window(there, horizon, partial)]
    if not pairs:
        return nan
    if "transfer" in clipping:
        if any(o <= 1e-12 for _, o in pairs):
            return nan
        ratios = [a / o if clipping == "raw-transfer" else min(1, a / o) for a, o in pairs]
        return sum(ratios) / len(ratios)
    bottom = sum(o for _, o in pairs)
    top = sum(min(a, o) if clipping == "elementwise" else a for a, o in pairs)
    if bottom / len(pairs) <= 1e-12:
        return nan
    return min(1, top / bottom) if clipping == "ratio" else top / bottom


def slow_future(A, t, horizon, partial, summary):
    future = A[t, t + 1 :]
    steps = slow_window(~np.isnan(future), horizon, partial)
    return summary([future[k - 1] for k in steps]) if steps else nan


horizons = st.none() | st.integers(1, 6)


@settings(deadline=None)
@given(matrices(), st.sampled_from([0.0, 0.3, 0.5, 0.8, 1.0]), st.sampled_from(["stop", "skip"]))
def test_stability_horizon_equals_loops(A, delta, gaps):
    result = stability_horizon(A, delta, gaps)
    assert_array_equal(result, [slow_sh(A, t, delta, gaps) for t in range(len(A))])


alarms = st.tuples(
    st.floats(0, 0.3), st.floats(0, 1), st.integers(1, 6), st.sampled_from(["both", "drop"]), st.booleans()
)


@settings(deadline=None)
@given(matrices(), alarms)
def test_drift_horizon_equals_loops(A, settings):
    result = drift_horizon(A, *settings)
    slow = [slow_dh(A, t, *settings) for t in range(len(A))]
    assert_array_equal(result.paper, slow)
    assert_array_equal(result.censored, np.array(slow) == settings[2] + 1)
    assert_array_equal(np.isnan(result), result.censored | ~result.counted)


@settings(deadline=None)
@given(matrices(), st.tuples(horizons, st.sampled_from(CLIPPINGS), st.booleans()))
def test_adaptation_score_equals_loops(A, settings):
    slow = [slow_tas(A, t, *settings) for t in range(len(A))]
    assert_allclose(adaptation_score(A, *settings), slow, rtol=1e-9, atol=1e-300)


@settings(deadline=None)
@given(matrices(), horizons, st.booleans())
def test_accuracies_equal_loops(A, horizon, partial):
    for compute, summary in [(out_of_distribution, np.mean), (worst_future, min)]:
        slow = [slow_future(A, t, horizon, partial, summary) for t in range(len(A))]
        assert_allclose(compute(A, horizon, partial), slow)
    slow = [[slow_ratio(A, t, tau) for tau in range(len(A))] for t in range(len(A))]
    assert_allclose(transfer_ratio(A, clip=False), slow)
    assert_array_equal(in_distribution(A), [A[t, t] for t in range(len(A))])


@settings(deadline=None)
@given(matrices())
def test_summaries_equal_loops(A):
    for compute in (
        lambda A: stability_horizon(A, 0.8),
        lambda A: drift_horizon(A, 0.1, 0.2, 2),
        adaptation_score,
    ):
        result = compute(A)
        counted = getattr(result, "counted", ~np.isnan(result.values))
        entering = [v for v, c in zip(getattr(result, "paper", result.values), counted, strict=True) if c]
        assert_allclose(result.mean, np.mean(entering) if entering else nan)
        assert_allclose(result.minimum, min(entering) if entering else nan)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_a_batch_equals_one_by_one(periods, seed):
    rng = np.random.default_rng(seed)
    A = rng.uniform(size=(2, 3, periods, periods))
    A[rng.random(A.shape) < 0.2] = nan
    for name, compute in ALL.items():
        batch = compute(A)
        single = [[compute(x) for x in xs] for xs in A]
        assert_array_equal(batch, np.array([[np.asarray(x) for x in xs] for xs in single]), err_msg=name)
        for summary in ("mean", "minimum", "censored", "paper"):
            if name != "ttr" and hasattr(batch, summary):
                assert_allclose(
                    getattr(batch, summary),
                    [[getattr(x, summary) for x in xs] for xs in single],
                    err_msg=name,
                )
