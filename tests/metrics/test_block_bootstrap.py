"""The block bootstrap against enumeration, a slow direct rule for the length, and processes with a known memory."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose

from driftline.errors import UserError
from driftline.metrics.block_bootstrap import block_length, resample_blocks
from driftline.metrics.confidence import bootstrap_means, percentile_interval


def remembering(rng: np.random.Generator, n: int, memory: float) -> np.ndarray:
    """An AR(1) process with mean 0, from its stationary state on."""
    noise, series = rng.normal(size=n), np.zeros(n)
    series[0] = noise[0] / np.sqrt(1 - memory**2)
    for k in range(1, n):
        series[k] = memory * series[k - 1] + noise[k]
    return series


def test_all_draws_by_enumeration() -> None:
    """Five steps in blocks of two, two and one: every choice of beginnings, as often as it should come."""
    series, n = np.array([0.0, 1.0, 4.0, 9.0, 16.0]), 5
    two = [series[k] + series[(k + 1) % n] for k in range(n)]
    means = np.array([(two[a] + two[b] + series[c]) / n for a, b, c in product(range(n), repeat=3)])
    drawn = resample_blocks(series, 60_000, np.random.default_rng(0), length=2)
    values, counts = np.unique(means.round(6), return_counts=True)
    found, seen = np.unique(drawn.round(6), return_counts=True)
    assert_allclose(found, values)
    assert_allclose(seen / 60_000, counts / len(means), atol=0.005)


def test_one_step_blocks_are_the_plain_bootstrap_and_whole_ones_have_no_spread() -> None:
    series = np.random.default_rng(1).random(50)
    drawn = resample_blocks(series, 20_000, np.random.default_rng(2), length=1)
    assert drawn.std() == pytest.approx(series.std() / np.sqrt(50), rel=0.03)
    whole = resample_blocks(series, 100, np.random.default_rng(2), length=50)
    assert_allclose(whole, series.mean())


def test_the_ends_count_as_much_as_the_middle() -> None:
    """Blocks that do not wrap around would hold the first and last steps less often: about .14 instead of .2."""
    series = np.array([1.0, 0, 0, 0, 0, 0, 0, 0, 0, 1.0])
    drawn = resample_blocks(series, 20_000, np.random.default_rng(0), length=4)
    assert drawn.mean() == pytest.approx(0.2, abs=0.005)


def test_intervals_hold_the_mean_of_a_process_with_memory_where_single_steps_do_not() -> None:
    blocks = steps = 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        series = remembering(rng, 300, 0.7)
        low, high = percentile_interval(resample_blocks(series, 300, rng))
        blocks += low <= 0 <= high
        low, high = percentile_interval(bootstrap_means(series, 300, rng))
        steps += low <= 0 <= high
    assert 0.85 <= blocks / 150 <= 0.98
    assert steps / 150 < 0.70


def direct_length(series: np.ndarray) -> int:
    """The rule as the papers write it, with sums from -M to M."""
    n, centred = len(series), series - series.mean()

    def covariance(k: int) -> float:
        return sum(centred[t] * centred[t + abs(k)] for t in range(n - abs(k))) / n

    def flat_top(x: float) -> float:
        return 1.0 if abs(x) <= 0.5 else max(0.0, 2 * (1 - abs(x)))

    near = [abs(covariance(k) / covariance(0)) < 2 * np.sqrt(np.log10(n) / n) for k in range(1, 40)]
    m = next(k for k in range(30) if all(near[k : k + 5]))
    M = 2 * m
    lags = range(-M, M + 1)
    G = sum(flat_top(k / M) * abs(k) * covariance(k) for k in lags)
    D = 4 / 3 * sum(flat_top(k / M) * covariance(k) for k in lags) ** 2
    return int(np.ceil((2 * G**2 / D * n) ** (1 / 3)))


@pytest.mark.parametrize("seed", range(3))
def test_length_by_the_rule_written_out(seed: int) -> None:
    series = remembering(np.random.default_rng(seed), 300, 0.6)
    assert block_length(series) == direct_length(series) > 2


def test_length_at_the_edges() -> None:
    assert block_length([0.5]) == block_length([0.5, 0.5, 0.5, 0.5]) == 1
    assert block_length([0.0, 1.0]) == 1
    assert block_length([0, 1] * 5 + [0]) == 1  # what swings back and forth is no less sure than its steps
    assert 20 < block_length(np.arange(100) >= 50) <= 30  # it hardly forgets, but no block is longer than 3 sqrt(n)


def test_what_is_no_series() -> None:
    with pytest.raises(UserError, match="one-dimensional, not empty, and finite"):
        block_length([0.5, np.nan])
    with pytest.raises(UserError, match="must be from 1 to 3"):
        resample_blocks([1, 2, 3], 10, np.random.default_rng(0), length=4)
