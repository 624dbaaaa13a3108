"""Paired tests, Holm and ranks against worked examples, enumeration and scipy."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats

from driftline.errors import UserError
from driftline.metrics.significance import average_ranks, friedman, holm, paired_t_test, sign_flip

nan = np.nan
P_VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=12)


def test_holm_by_hand() -> None:
    """.005 x 4, .01 x 3, .03 x 2, then .04 x 1, which must not fall below the one before it."""
    assert_allclose(holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])


def test_holm_stops_at_one_and_leaves_out_what_was_not_tested() -> None:
    assert_allclose(holm([0.6, nan, 0.02, 0.5]), [1.0, nan, 0.06, 1.0])
    assert np.isnan(holm([nan, nan])).all()
    assert holm([]).shape == (0,)
    with pytest.raises(UserError, match="between 0 and 1"):
        holm([1.2])


@given(P_VALUES)
def test_holm_keeps_the_order_and_lies_between_no_correction_and_bonferroni(p: list[float]) -> None:
    found, raw = holm(p), np.array(p)
    assert (np.diff(found[np.argsort(raw, kind="stable")]) >= 0).all()
    assert (found >= raw).all()
    assert (found <= np.minimum(1, raw * len(raw)) + 1e-15).all()


@given(P_VALUES, st.randoms(use_true_random=False))
def test_holm_does_not_depend_on_the_order_of_methods(p: list[float], random) -> None:
    order = list(range(len(p)))
    random.shuffle(order)
    assert_allclose(holm(np.array(p)[order]), holm(p)[order])


@pytest.mark.parametrize("n", [2, 3, 5, 12])
def test_paired_t_as_scipy_has_it(n: int) -> None:
    rng = np.random.default_rng(n)
    one, other = rng.random(n), rng.random(n)
    found, scipy_says = paired_t_test(one - other), stats.ttest_rel(one, other)
    assert found.p == pytest.approx(scipy_says.pvalue)
    assert (found.low, found.high) == pytest.approx(tuple(scipy_says.confidence_interval(0.95)))
    assert (found.value, found.n) == (pytest.approx((one - other).mean()), n)
    assert (found.p < 0.05) == (not found.low <= 0 <= found.high)  # test and interval say the same


def test_pairing_sees_what_an_unpaired_test_cannot() -> None:
    one, other = np.array([0.32, 0.521, 0.72]), np.array([0.30, 0.50, 0.70])
    assert paired_t_test(one - other).p < 0.001
    assert stats.ttest_ind(one, other).pvalue > 0.9


def test_pairs_at_the_edges() -> None:
    assert paired_t_test([0.1, nan, 0.3]).n == 2
    alone = paired_t_test([0.1])
    assert (alone.value, alone.n) == (0.1, 1)
    assert np.isnan([alone.low, alone.high, alone.p]).all()
    assert np.isnan(paired_t_test([]).value)
    assert paired_t_test([0.0, 0.0, 0.0]).p == 1
    assert paired_t_test([0.1 + 0.2 - 0.3] * 3).p == 1  # a difference in the last bit is none
    assert paired_t_test([0.25, 0.25, 0.25]).p == 0


def enumerated(differences: list[float]) -> float:
    """All 2^n signs, one by one."""
    means = [abs(sum(s * d for s, d in zip(signs, differences, strict=True))) for signs in product((1, -1), repeat=5)]
    return sum(mean >= abs(sum(differences)) - 1e-12 for mean in means) / len(means)


@pytest.mark.parametrize("seed", range(6))
def test_sign_flips_by_enumeration(seed: int) -> None:
    differences = np.random.default_rng(seed).normal(0.5, 1, 5).round(1).tolist()  # rounded, so that some means tie
    assert sign_flip(differences) == pytest.approx(enumerated(differences))


def test_three_seeds_cannot_reach_five_percent_by_sign_flips() -> None:
    """Why the t test is the one that marks: here it is sure, and sign flips cannot be."""
    assert sign_flip([0.20, 0.21, 0.19]) == 0.25
    assert paired_t_test([0.20, 0.21, 0.19]).p < 0.001
    assert sign_flip([1, 1, 1, 1, 1, 1]) == 2 / 2**6
    assert np.isnan(sign_flip([nan]))


def test_many_pairs_by_random_flips() -> None:
    """Of 20 differences of one size, 15 up and 5 down: the binomial knows p."""
    exact = stats.binomtest(15, 20).pvalue
    assert sign_flip([1.0] * 15 + [-1.0] * 5) == pytest.approx(exact, abs=0.003)


@pytest.mark.parametrize("seed", range(4))
def test_friedman_as_scipy_has_it_with_ties(seed: int) -> None:
    table = np.random.default_rng(seed).random((7, 4)).round(1)
    found, scipy_says = friedman(table), stats.friedmanchisquare(*table.T)
    assert (found.statistic, found.p) == pytest.approx((scipy_says.statistic, scipy_says.pvalue))
    assert_allclose(found.mean, stats.rankdata(-table, axis=1).mean(axis=0))
    assert found.n == 7


def test_friedman_corrects_for_ties() -> None:
    """Ranks 1.5, 1.5, 3 twice: means 1.5, 1.5, 3; without the correction it would be 3, with it 4."""
    found = friedman([[0.9, 0.9, 0.1], [0.8, 0.8, 0.3]])
    assert found.mean.tolist() == [1.5, 1.5, 3]
    assert found.statistic == pytest.approx(4)
    uncorrected = 12 * 2 / (3 * 4) * ((found.mean - 2) ** 2).sum()
    assert uncorrected == pytest.approx(3)


@given(st.integers(2, 5), st.integers(2, 6), st.integers(0, 99))
def test_friedman_does_not_depend_on_the_order_of_methods_and_turns_with_the_direction(
    k: int, n: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    table, order = rng.integers(0, 5, (n, k)) / 10, rng.permutation(k)
    found, moved, turned = friedman(table), friedman(table[:, order]), friedman(table, "lower")
    assert_allclose(moved.mean, found.mean[order])
    assert_allclose(turned.mean, k + 1 - found.mean)
    assert found.mean.sum() == pytest.approx(k * (k + 1) / 2)
    assert found.p == pytest.approx(moved.p) == pytest.approx(turned.p)


def test_friedman_at_the_edges() -> None:
    alike = friedman([[0.5, 0.5], [0.7, 0.7]])
    assert (alike.mean.tolist(), alike.statistic, alike.p) == ([1.5, 1.5], 0.0, 1.0)
    assert average_ranks([0.1 + 0.2, 0.3]).tolist() == [1.5, 1.5]  # equal but for a bit
    for wrong in ([[0.5, 0.6]], [[0.5], [0.6]], [[0.5, nan], [0.6, 0.7]]):
        with pytest.raises(UserError, match="two settings and two methods"):
            friedman(wrong)
