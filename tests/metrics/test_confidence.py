"""The bootstrap within periods, and intervals against known numbers."""

import time
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from driftline.errors import UserError
from driftline.metrics import confidence
from driftline.metrics.confidence import (
    PeriodAnswers,
    accuracy_matrix,
    bootstrap_matrices,
    percentile_interval,
    standard_errors,
    t_interval_over_seeds,
    wilson,
)
from driftline.metrics.horizons import stability_horizon
from driftline.metrics.temporal import adaptation_score

nan = np.nan


def history(rng, periods=5, examples=200, held_out=40, chance=0.7):
    """Independent models, each right with the given chance, the first `held_out` examples being held out."""
    columns = []
    for tau in range(periods):
        own = np.where(np.arange(examples) < held_out, rng.random(examples) < chance, nan)
        columns.append(PeriodAnswers(rng.random((tau, examples)) < chance, own))
    return columns


def test_accuracies_and_their_counts():
    columns = [
        PeriodAnswers(np.zeros((0, 3)), [1, nan, 0]),
        PeriodAnswers([[True, False, True, True]], [nan, nan, 1, 0]),
        PeriodAnswers([[nan, nan], [1, 1]], [nan, nan]),
    ]
    A, n = accuracy_matrix(columns)
    assert_array_equal(A, [[0.5, 0.75, nan], [nan, 0.5, 1], [nan, nan, nan]])
    assert_array_equal(n, [[2, 4, 0], [0, 2, 2], [0, 0, 0]])


def test_draws_have_the_shape_and_the_gaps_of_the_matrix():
    columns = history(np.random.default_rng(0))
    columns[3].later[1] = True
    columns[4] = PeriodAnswers(np.where(np.arange(4)[:, None] == 2, nan, columns[4].later), np.full(200, nan))
    A, _ = accuracy_matrix(columns)
    draws = bootstrap_matrices(columns, 50, np.random.default_rng(1))
    assert draws.shape == (50, 5, 5)
    assert_array_equal(np.isnan(draws), np.broadcast_to(np.isnan(A), draws.shape))
    assert_array_equal(draws[:, 1, 3], 1)  # all right stays all right, exactly


def test_models_on_the_same_examples_are_resampled_together():
    rng = np.random.default_rng(0)
    same = rng.random(100) < 0.6
    opposite = ~same
    columns = [*history(rng, 3, 100), PeriodAnswers(np.array([same, same, opposite]), same.astype(float))]
    draws = bootstrap_matrices(columns, 300, rng)
    assert_array_equal(draws[:, 0, 3] - draws[:, 1, 3], 0)
    assert np.corrcoef(draws[:, 0, 3], draws[:, 3, 3])[0, 1] > 0.95  # the diagonal has a little noise of its own
    assert_allclose(draws[:, 0, 3] + draws[:, 2, 3], 1)
    assert draws[:, 0, 3].std() > 0.02


def test_periods_are_resampled_apart():
    same = (np.random.default_rng(0).random(100) < 0.6).astype(float)
    draws = bootstrap_matrices([PeriodAnswers([], same), PeriodAnswers([same], same)], 2000, np.random.default_rng(1))
    assert abs(np.corrcoef(draws[:, 0, 0], draws[:, 1, 1])[0, 1]) < 0.1


@pytest.mark.parametrize("right", [[1] * 7, [1, 0, 1, 1, 0, 1, 1], [0] * 7])
def test_a_diagonal_of_few_examples_is_never_certain(right):
    """The spread of its draws is the standard error with two right and two wrong answers more (before any cut)."""
    own = np.full(50, nan)
    own[:7] = right
    column = PeriodAnswers([], own)
    draws = bootstrap_matrices([column], 20_000, np.random.default_rng(0))[:, 0, 0]
    p = (sum(right) + 2) / 11
    error = standard_errors([column]).item()
    assert error == pytest.approx(np.sqrt(p * (1 - p) / 7))
    inward = draws[(draws - np.mean(right)) * (0.5 - np.mean(right)) > 0] if 0 < sum(right) < 7 else draws[draws > 0]
    assert not np.isnan(draws).any()
    assert ((draws >= 0) & (draws <= 1)).all()
    spread = np.sqrt(np.mean((inward[inward < 1] - np.mean(right)) ** 2))
    assert spread == pytest.approx(error, rel=0.05)


def test_strata_never_exchange_examples():
    """Held-out examples all right and the others all wrong: the share of right ones never moves."""
    own = np.where(np.arange(50) < 10, 1.0, nan)
    draws = bootstrap_matrices(
        [PeriodAnswers([], own), PeriodAnswers([np.arange(50) < 10], own)], 100, np.random.default_rng(0)
    )
    assert_array_equal(draws[:, 0, 1], 0.2)


@pytest.mark.parametrize(("t", "n"), [(0, 200), (2, 40)])
def test_draws_have_the_mean_and_spread_theory_gives(t, n):
    columns = history(np.random.default_rng(3), 3)
    A, counts = accuracy_matrix(columns)
    draws = bootstrap_matrices(columns, 20_000, np.random.default_rng(4))[:, t, 2]
    assert counts[t, 2] == n
    strata = [slice(0, 40), slice(40, 200)] if t == 0 else [slice(0, 40)]
    scores = columns[2].scores[t]
    variance = sum(scores[s].var() * len(scores[s]) for s in strata) / n**2
    assert draws.mean() == pytest.approx(A[t, 2], abs=5 * np.sqrt(variance / 20_000))
    error = np.sqrt(variance) if t == 0 else standard_errors(columns)[t, 2]
    assert draws.std() == pytest.approx(error, rel=0.03)


def test_weights_are_multinomial():
    held_out = np.arange(10) < 4
    weights = confidence._weights(held_out, 20_000, np.random.default_rng(0))
    assert_array_equal(weights[:, :4].sum(axis=1), 4)
    assert_array_equal(weights[:, 4:].sum(axis=1), 6)
    assert_allclose(weights.mean(axis=0), 1, atol=0.05)
    assert_allclose(weights[:, :4].var(axis=0), 3 / 4, atol=0.05)
    assert np.cov(weights[:, 0], weights[:, 1])[0, 1] == pytest.approx(-1 / 4, abs=0.05)


def test_chunks_do_not_leave_holes(monkeypatch):
    monkeypatch.setattr(confidence, "MAX_RESAMPLED_AT_ONCE", 7 * 200)
    columns = history(np.random.default_rng(0), 3)
    draws = bootstrap_matrices(columns, 30, np.random.default_rng(0))
    assert not np.isnan(draws[:, np.tri(3).T > 0]).any()
    assert len(np.unique(draws[:, 0, 2])) > 5


def test_the_same_generator_gives_the_same_draws():
    columns = history(np.random.default_rng(0), 3)
    one, other = (bootstrap_matrices(columns, 10, np.random.default_rng(5)) for _ in range(2))
    assert_array_equal(one, other)


def test_intervals_cover_about_as_often_as_they_say():
    rng = np.random.default_rng(0)
    covered = []
    for _ in range(200):
        column = PeriodAnswers(rng.random((1, 150)) < 0.7, np.full(150, nan))
        low, high = percentile_interval(
            bootstrap_matrices([PeriodAnswers([], [1.0]), column], 400, rng)[:, 0, 1], level=0.9
        )
        covered.append(low <= 0.7 <= high)
    assert 0.83 <= np.mean(covered) <= 0.96


def test_draws_flow_through_the_temporal_metrics():
    draws = bootstrap_matrices(history(np.random.default_rng(0)), 100, np.random.default_rng(1))
    low, high = percentile_interval(adaptation_score(draws).mean)
    assert 0.5 < low < high <= 1
    low, high = percentile_interval(stability_horizon(draws, 0.8))
    assert low.shape == (5,)
    assert (low <= high).all()


def test_a_yearbook_takes_seconds():
    columns = history(np.random.default_rng(0), periods=84, examples=440, held_out=44)
    start = time.process_time()
    assert bootstrap_matrices(columns, 200, np.random.default_rng(0)).shape == (200, 84, 84)
    assert time.process_time() - start < 20


def test_an_empty_period_is_nan():
    columns = [PeriodAnswers([], []), PeriodAnswers(np.zeros((1, 0)), [])]
    assert np.isnan(accuracy_matrix(columns)[0]).all()
    assert np.isnan(bootstrap_matrices(columns, 3, np.random.default_rng(0))).all()


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        (lambda: PeriodAnswers([[1, 0]], [1, 0, 1]), "models x examples"),
        (lambda: PeriodAnswers([1, 0], [1, 0]), "models x examples"),
        (lambda: PeriodAnswers([[97.0, 0]], [1, 0]), "at most 1 .right."),
        (lambda: accuracy_matrix([]), "no columns"),
        (
            lambda: accuracy_matrix([PeriodAnswers([[1.0]], [1.0])]),
            "period 0 must have answers of 0 earlier models, not 1",
        ),
        (lambda: bootstrap_matrices([PeriodAnswers([], [1.0])], 0, np.random.default_rng(0)), "at least one draw"),
        (lambda: percentile_interval([1.0], level=95), "level"),
        (lambda: wilson(3, 2), "successes <= n"),
    ],
)
def test_mistakes_are_explained(call, hint):
    with pytest.raises(UserError, match=hint):
        call()


def test_percentiles_leave_nan_out_without_a_warning():
    draws = np.array([[1.0, nan, nan], [2.0, 5.0, nan], [3.0, nan, nan]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        low, high = percentile_interval(draws, level=0.5)
    assert_allclose(low, [1.5, 5, nan])
    assert_allclose(high, [2.5, 5, nan])
    assert_allclose(percentile_interval(draws.T, level=0.5, axis=1).low, low)
    assert_allclose(percentile_interval(draws.T, level=0.5, axis=-1).high, high)


def test_percentiles_leave_equal_tails():
    low, high = percentile_interval(np.arange(1001) / 1000)
    assert (low, high) == (pytest.approx(0.025), pytest.approx(0.975))


def test_seed_interval_is_students():
    # mean 3, s = sqrt(2.5), t(.975, 4) = 2.776445
    low, high = t_interval_over_seeds([1, 2, 3, 4, 5])
    half = 2.776445 * np.sqrt(2.5) / np.sqrt(5)
    assert (low, high) == (pytest.approx(3 - half, abs=1e-5), pytest.approx(3 + half, abs=1e-5))
    two = t_interval_over_seeds([0.0, 1.0])
    assert two.high - two.low == pytest.approx(12.7062, abs=1e-4)


def test_seed_interval_needs_two_seeds():
    for few in ([], [0.5], [0.5, nan]):
        assert np.isnan(t_interval_over_seeds(few)).all()
    low, high = t_interval_over_seeds([[1, 0.5], [2, nan], [3, nan]])
    assert_array_equal(np.isnan(low), [False, True])
    assert (low[0] + high[0]) / 2 == pytest.approx(2)
    assert_allclose(t_interval_over_seeds([1, 2, nan, 3]), t_interval_over_seeds([1, 2, 3]))


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [
        (0, 10, 0, 0.2775),
        (10, 10, 0.7225, 1),
        (5, 10, 0.2366, 0.7634),
        (1, 10, 0.0179, 0.4042),
        (81, 263, 0.2553, 0.3662),
    ],
)
def test_wilson_known_values(successes, n, low, high):
    assert_allclose(wilson(successes, n), (low, high), atol=5e-5)


def test_wilson_on_arrays_levels_and_nothing():
    low, high = wilson([5, 0], [10, 0])
    assert_allclose(low, [0.2366, nan], atol=5e-5)
    assert_allclose(high, [0.7634, nan], atol=5e-5)
    assert wilson(5, 10, level=0.5).low > low[0]
