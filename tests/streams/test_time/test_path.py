"""Paths through a matrix of accuracies: against the literal recursion, against all paths, and on realistic matrices."""

from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from driftline.errors import UserError
from driftline.streams import corruption_path

SEVERITIES = np.arange(21) / 4


def matrices(largest=5):
    return st.integers(2, largest).flatmap(lambda n: arrays(float, (n, n), elements=st.integers(0, 100)))


def every_path(n):
    """All valid paths through a matrix of n levels."""

    def on(i, j):
        if i == 0:
            yield ((0, j),)
            return
        for follower in ((i - 1, j), (i, j + 1)):
            if follower[1] < n:
                yield from (((i, j), *rest) for rest in on(*follower))

    return [path for start in range(1, n) for path in on(start, 0)]


def literal(matrix, target):
    """The recursion as it is written down: lists of entries, means of lists, strictly better to leave (i, j + 1)."""

    @cache
    def best(i, j):
        if i == 0:
            return ((0, j),)
        falling = ((i, j), *best(i - 1, j))
        if j + 1 == len(matrix):
            return falling
        rising = ((i, j), *best(i, j + 1))
        return falling if cost(falling) < cost(rising) else rising

    def cost(path):
        return abs(sum(matrix[point] for point in reversed(path)) / len(path) - target)

    found = None
    for start in range(1, len(matrix)):
        path = best(start, 0)
        if found is None or cost(path) < cost(found):
            found = path
    return found


def squares(matrix, path, target):
    return np.mean([(matrix[point] - target) ** 2 for point in path])


def realistic(rng, scale, noise=0.5):
    """76 percent, times a decay of each corruption's own, as far as 5,000 images tell."""
    a, b = (np.sqrt(76) * np.exp(-((SEVERITIES / s) ** 1.8)) for s in scale)
    return np.clip(a[:, None] * b[None, :] + rng.normal(0, noise, (21, 21)), 0, 100)


@given(matrices(), st.integers(0, 100))
@settings(max_examples=200, deadline=None)
def test_mean_cost_is_the_recursion_to_the_letter(matrix, target):
    assert corruption_path(matrix, target) == literal(matrix, target)


@given(matrices(4), st.integers(0, 100))
@settings(max_examples=100, deadline=None)
def test_least_squares_is_the_best_of_all_paths(matrix, target):
    path = corruption_path(matrix, target, "least-squares")
    everything = every_path(len(matrix))
    assert path in everything
    assert squares(matrix, path, target) == pytest.approx(min(squares(matrix, p, target) for p in everything))


@given(matrices(5), st.integers(0, 100), st.sampled_from(["mean-cost", "least-squares"]))
@settings(deadline=None)
def test_a_path_moves_one_level_at_a_time_and_stops_at_the_first_zero(matrix, target, method):
    path = corruption_path(matrix, target, method)
    assert path[0][1] == 0
    assert path[0][0] >= 1
    assert [i for i, _ in path].count(0) == 1
    assert path[-1][0] == 0
    assert len(path) == path[0][0] + path[-1][1] + 1
    steps = {(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(path)}
    assert steps <= {(-1, 0), (0, 1)}


def test_ties_go_to_the_second_corruption_and_to_the_lowest_start():
    level = np.full((3, 3), 40.0)
    assert corruption_path(level, 40) == ((1, 0), (1, 1), (1, 2), (0, 2))
    assert corruption_path(level, 40, "least-squares") == ((1, 0), (0, 0))


def test_mean_cost_accepts_what_least_squares_does_not():
    """A mean of 40 from 80 and 0: perfect by the mean, far off at every point."""
    matrix = np.array([[80.0, 41.0], [0.0, 41.0]])
    assert corruption_path(matrix, 40) == ((1, 0), (0, 0))
    assert corruption_path(matrix, 40, "least-squares") == ((1, 0), (1, 1), (0, 1))


def test_the_mean_of_squares_not_their_sum():
    """The sum of squares prefers two points that are off by 5 to four of which three are off by 4."""
    matrix = np.full((3, 3), 300.0)
    matrix[1, 0] = matrix[0, 0] = 45.0
    matrix[1, 1] = matrix[1, 2] = matrix[0, 2] = 44.0
    short, long = ((1, 0), (0, 0)), ((1, 0), (1, 1), (1, 2), (0, 2))
    assert squares(matrix, short, 40) * 2 < squares(matrix, long, 40) * 4
    assert corruption_path(matrix, 40, "least-squares") == long


@pytest.mark.parametrize("method", ["mean-cost", "least-squares"])
def test_a_target_of_nothing_goes_the_whole_way(method):
    rng = np.random.default_rng(0)
    for _ in range(10):
        path = corruption_path(realistic(rng, rng.uniform(1.0, 2.5, 2), noise=0), 0, method)
        assert len(path) == 41
        assert (path[0], path[-1]) == ((20, 0), (0, 20))


@pytest.mark.parametrize("method", ["mean-cost", "least-squares"])
@pytest.mark.parametrize(("target", "shortest", "longest", "mean"), [(40, 11, 36, 22.8), (20, 21, 41, 33.9)])
def test_lengths_are_those_of_table_6(method, target, shortest, longest, mean):
    rng = np.random.default_rng(1)
    scales = rng.uniform(2.6, 4.6, (40, 2))
    lengths = [len(corruption_path(realistic(rng, pair), target, method)) for pair in scales]
    assert shortest <= min(lengths)
    assert max(lengths) <= longest
    assert abs(np.mean(lengths) - mean) < 4


def test_least_squares_stays_nearer_to_the_target():
    rng = np.random.default_rng(2)
    off = {"mean-cost": [], "least-squares": []}
    for pair in rng.uniform(2.6, 4.6, (20, 2)):
        matrix = realistic(rng, pair)
        for method, deviations in off.items():
            deviations.append(squares(matrix, corruption_path(matrix, 40, method), 40) ** 0.5)
    assert np.all(np.array(off["least-squares"]) <= np.array(off["mean-cost"]) + 1e-9)
    assert np.mean(off["least-squares"]) < np.mean(off["mean-cost"])


@pytest.mark.parametrize("matrix", [np.zeros((3, 4)), np.zeros(3), np.zeros((1, 1)), np.full((3, 3), np.nan)])
def test_what_is_no_matrix_is_refused(matrix):
    with pytest.raises(UserError, match="a path is searched in"):
        corruption_path(matrix, 40)


def test_an_unknown_search_is_refused():
    with pytest.raises(UserError, match="Did you mean 'least-squares'"):
        corruption_path(np.zeros((3, 3)), 40, "least-square")


def test_between_equally_good_paths_the_second_corruption_rises_first():
    matrix = np.array([[80, 40, 0], [41, 40, 0], [40, 41, 0]])
    assert corruption_path(matrix, 40, "least-squares") == ((2, 0), (2, 1), (1, 1), (0, 1))
