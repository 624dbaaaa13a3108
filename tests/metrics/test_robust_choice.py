"""Which method to deploy: the worked example, and what depends on the methods that are listed."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from driftline.metrics.robust_choice import (
    bayesian_signed_rank,
    iman_davenport,
    mean_ranks,
    nemenyi_difference,
    regrets,
    resampled_seeds,
    wilcoxon_p,
)

A, B, C = 0, 1, 2
WORKED = np.array([[0.90, 0.85, 0.70], [0.90, 0.84, 0.70], [0.90, 0.86, 0.70], [0.30, 0.60, 0.70]])


def test_ranks_choose_one_method_and_regret_another() -> None:
    assert mean_ranks(WORKED).tolist() == [1.5, 2.0, 2.5]
    largest = regrets(WORKED).max(axis=0)
    assert largest.tolist() == pytest.approx([0.40, 0.10, 0.20])
    assert (mean_ranks(WORKED).argmin(), WORKED.mean(axis=0).argmax(), largest.argmin()) == (A, B, B)
    assert WORKED.min(axis=0).argmax() == C


def test_a_method_that_is_never_best_changes_ranks_and_no_regret() -> None:
    """With two such methods, the order of A and B by mean rank turns around."""
    table = np.array([[0.80, 0.70, 0.60], [0.60, 0.66, 0.64], [0.40, 0.68, 0.62], [0.75, 0.72, 0.65]])
    more = np.column_stack([table, [0.75, 0.1, 0.1, 0.74], [0.74, 0.1, 0.1, 0.73]])
    assert mean_ranks(table)[:2].tolist() == [2.0, 1.5]
    assert mean_ranks(more)[:2].tolist() == [2.0, 2.5]
    assert (regrets(more)[:, :3] == regrets(table)).all()


def test_tests_of_ranks_have_the_numbers_of_the_tables() -> None:
    assert iman_davenport(WORKED) == pytest.approx((1.0, stats.f.sf(1.0, 2, 6)))
    assert nemenyi_difference(3, 4) == pytest.approx(2.344 * np.sqrt(12 / 24), abs=1e-3)
    quantiles = {2: 1.960, 5: 2.728, 10: 3.164, 20: 3.544, 40: 3.888}
    for k, q in quantiles.items():
        assert nemenyi_difference(k, 1) / np.sqrt(k * (k + 1) / 6) == pytest.approx(q, abs=2e-3)
    assert nemenyi_difference(40, 5) == pytest.approx(28.7, abs=0.1), "forty methods in five settings separate nothing"


@pytest.mark.parametrize("values", [[1, -2, 3, 4, 5, 6.5], [0.1, 0.2, -0.3, 0.4, 0.5, 0.6, 0.7, 0.8], [0, 0, 1, 2]])
def test_wilcoxon_counts_all_signs(values: list[float]) -> None:
    known = np.array([v for v in values if v])
    ranks = stats.rankdata(np.abs(known))
    signs = np.array(np.meshgrid(*[[-1, 1]] * len(known))).reshape(len(known), -1)
    sums = np.abs(ranks @ signs)
    assert wilcoxon_p(values) == pytest.approx(np.mean(sums >= abs(ranks @ np.sign(known)) - 1e-9))
    assert wilcoxon_p([0.0, 0.0]) == 1.0


def test_the_signed_rank_verdict_is_that_of_the_worked_example() -> None:
    found = bayesian_signed_rank(WORKED[:, A], WORKED[:, B], 0.01, np.random.default_rng(0))
    assert found == pytest.approx((0.684, 0.005, 0.311), abs=0.006)
    assert sum(found) == pytest.approx(1)
    assert bayesian_signed_rank(WORKED[:, B], WORKED[:, C], 0.01, np.random.default_rng(0)).better == pytest.approx(
        0.961, abs=0.006
    )
    mirrored = bayesian_signed_rank(WORKED[:, B], WORKED[:, A], 0.01, np.random.default_rng(0))
    assert (mirrored.better, mirrored.worse) == (found.worse, found.better)
    level = bayesian_signed_rank(WORKED[:, A], WORKED[:, A] + 0.005, 0.01, np.random.default_rng(0))
    assert level.equal > 0.99


def test_seeds_are_drawn_together_for_all_methods_of_a_setting() -> None:
    scores = np.random.default_rng(0).random((3, 2, 4))
    scores[:, 1] = scores[:, 0] - 0.1
    draws = resampled_seeds(scores, 200, np.random.default_rng(1))
    assert draws.shape == (200, 3, 2)
    np.testing.assert_allclose(draws[:, :, 0] - draws[:, :, 1], 0.1)
    assert draws.mean(axis=0) == pytest.approx(scores.mean(axis=2), abs=0.05)
    assert len(np.unique(draws[:, 0, 0].round(9))) > 10
    assert (np.diff(draws[:, :2, 0].argsort(axis=0), axis=1) != 0).any(), "settings are drawn apart"
