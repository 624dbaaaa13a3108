"""The tests of an audit, on matrices whose truth is known: worked examples, exact identities, rates of false alarms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driftline.auditing.difference_tests import course_test, difference_test, odd_period
from driftline.auditing.interaction import effects, interaction, likeness
from driftline.auditing.order_test import kernels, order_test, permutations, smallest_p
from driftline.auditing.shape import BlockFit, Cut, find_shape, segments

SEEDS = st.integers(0, 10_000)


def concepts(angles: np.ndarray, noise: float = 0.02, seed: int = 0) -> np.ndarray:
    """Return a loss matrix of periods with concepts at these angles: the loss is high where they differ."""
    random = np.random.default_rng(seed)
    size = len(angles)
    return -0.1 * np.cos(angles[:, None] - angles) + noise * random.normal(size=(size, size))


@given(SEEDS)
@settings(max_examples=20, deadline=None)
def test_additive_matrices_have_no_interaction(seed: int) -> None:
    random = np.random.default_rng(seed)
    rows, columns = random.normal(size=(2, 7))
    additive = 3 + rows[:, None] + columns
    assert np.abs(interaction(additive)).max() < 1e-12
    found = effects(additive)
    np.testing.assert_allclose(found.rows, rows - rows.mean(), atol=1e-12)
    np.testing.assert_allclose(found.columns, columns - columns.mean(), atol=1e-12)


@given(SEEDS)
@settings(max_examples=20, deadline=None)
def test_likeness_ignores_row_column_and_diagonal_constants(seed: int) -> None:
    random = np.random.default_rng(seed)
    loss = random.normal(size=(6, 6))
    moved = loss + random.normal(size=6)[:, None] + random.normal(size=6) + np.diag(random.normal(size=6))
    np.testing.assert_allclose(likeness(moved), likeness(loss), atol=1e-12)


def test_the_kernels_are_those_of_the_method() -> None:
    described, patterns = kernels(20)
    families = [kernel.family for kernel in described]
    assert [families.count(name) for name in ("abrupt", "temporary")] == [17, 120]
    assert families.count("recurring") == 68
    np.testing.assert_allclose(np.linalg.norm(patterns, axis=1), 1)


def test_permutations_hold_groups_and_begin_with_the_identity() -> None:
    random = np.random.default_rng(0)
    assert len(permutations(4, random)) == 24
    order = permutations(9, random, [np.array([0, 1, 2]), np.array([5, 6])])
    assert order[0].tolist() == list(range(9))
    assert (order[:, [3, 4, 7, 8]] == [3, 4, 7, 8]).all()
    assert (np.sort(order[:, :3], axis=1) == [0, 1, 2]).all()


@pytest.mark.parametrize(
    ("angles", "family"),
    [
        (np.repeat([0, 1.5], 8), "abrupt"),
        (np.linspace(0, 1.5, 16), "gradual"),
        (np.tile([0, 0.8, 0, -0.8], 4), "recurring"),
        (np.repeat([0, 1.5, 0], [5, 5, 6]), "temporary"),
    ],
)
def test_order_and_shape_of_known_matrices(angles: np.ndarray, family: str) -> None:
    random = np.random.default_rng(1)
    alike = likeness(concepts(angles))
    test = order_test(alike, random)
    assert test.p <= 0.01
    shape = find_shape(alike, test, random)
    assert shape.kind == family
    expected = {"abrupt": (8,), "temporary": (5, 10)}.get(family, ())
    assert shape.boundaries == expected
    assert shape.cycle == (4 if family == "recurring" else None)


def test_weekends_are_a_cycle_of_a_week() -> None:
    """A state of two days in seven fits no single phase and no sine."""
    random = np.random.default_rng(0)
    alike = likeness(concepts(np.where(np.arange(28) % 7 >= 5, np.pi / 2, 0.0)))
    shape = find_shape(alike, order_test(alike, random), random)
    assert (shape.kind, shape.cycle, shape.further) == ("recurring", 7, None)


def test_a_mixed_period_is_one_change_inside_of_it() -> None:
    angles = np.repeat([0.0, 0.75, 1.5], [7, 1, 8])
    alike = likeness(concepts(angles, noise=0.005))
    random = np.random.default_rng(0)
    assert find_shape(alike, order_test(alike, random), random).cuts == (Cut(7, inside=True),)


def test_the_order_test_has_its_level_without_order() -> None:
    """Of 60 matrices without order, about 3 are significant; 10 or more would be a defect."""
    found = 0
    for seed in range(60):
        random = np.random.default_rng(seed)
        angles = random.normal(scale=0.5, size=12)
        found += order_test(likeness(concepts(angles, seed=seed)), random).p <= 0.05
    assert found < 10


def test_few_periods_allow_no_small_p() -> None:
    assert smallest_p(4) == pytest.approx(2 / 24)
    assert smallest_p(20) == pytest.approx(1 / 2000)


def test_the_difference_test_sees_the_advantage_of_own_models() -> None:
    random = np.random.default_rng(0)
    halves = 0.01 * random.normal(size=(2, 12, 12))
    assert difference_test(halves, random) > 0.05
    assert difference_test(halves - 0.05 * np.eye(12), random) < 0.01


def test_the_difference_test_moves_first_halves_only() -> None:
    """By hand with three periods: D(p) = -sum over t of I0[p(t), t] + I1[t, p(t)]."""
    halves = np.random.default_rng(3).normal(size=(2, 3, 3))
    one, other = (h - h.mean(0) - h.mean(1)[:, None] + h.mean() for h in halves)
    by_hand = []
    for p in ([0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]):
        by_hand.append(-sum(one[p[t], t] + other[t, p[t]] for t in range(3)))
    expected = np.mean([value >= by_hand[0] - 1e-12 for value in by_hand])
    assert difference_test(halves, np.random.default_rng(0)) == pytest.approx(expected)


def test_an_odd_period_is_found() -> None:
    random = np.random.default_rng(0)
    periods = np.repeat(np.arange(8), 50)
    losses = random.normal(1, 0.3, size=(2, 8, 400))
    calm = odd_period((losses[0], losses[1]), (periods, periods))
    losses[:, 5, periods == 5] -= 0.5  # the model of period 5 knows what no other does
    losses[:, 5, periods != 5] += 0.3
    odd = odd_period((losses[0], losses[1]), (periods, periods))
    assert calm.p > 0.01
    assert (odd.index, odd.p < 0.001) == (5, True)


def test_the_course_of_a_series() -> None:
    random = np.random.default_rng(0)
    step = course_test(np.repeat([0.8, 0.6], 8) + 0.01 * random.normal(size=16), random)
    assert step.p < 0.01
    assert step.start == 8
    assert step.change == pytest.approx(-0.2, abs=0.02)
    assert course_test(random.normal(size=16), random).p > 0.02


def test_blocks_by_hand() -> None:
    alike = np.array([[0, 2, 1], [2, 0, 1], [1, 1, 0.0]])
    fit = BlockFit(alike)
    assert segments(3, [2]) == [(0, 2), (2, 3)]
    assert fit.mean((0, 2), (0, 2)) == 2
    assert fit.mean((0, 2), (2, 3)) == 1
    assert fit.rss([2]) == pytest.approx(0)
    assert fit.rss([1]) == pytest.approx(4 + 1 + 1 - 9 / 2 - 1)
