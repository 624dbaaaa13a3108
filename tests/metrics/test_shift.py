"""Distances, and the split of a loss into its causes, against samples whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import roc_auc_score

from driftline.metrics.shift import (
    auc,
    benjamini_hochberg,
    error_change_by_feature,
    ks_distance,
    performance_gap,
    psi,
    total_variation,
)


def test_ks_is_scipys() -> None:
    random = np.random.default_rng(0)
    one, other = random.normal(size=300), random.normal(0.3, size=200)
    found, expected = ks_distance(one, other), stats.ks_2samp(one, other, method="asymp")
    assert found.effect == pytest.approx(expected.statistic)
    assert found.p == pytest.approx(expected.pvalue, rel=0.3)  # scipy corrects the asymptotic law a little


def test_gaps_are_a_value() -> None:
    assert ks_distance([1.0, 2.0, np.nan, np.nan], [1.0, 2.0, 1.0, 2.0]).effect == pytest.approx(0.5)
    assert ks_distance([np.nan] * 4, [np.nan] * 4).effect == 0


def test_effect_does_not_grow_with_the_sample_but_significance_does() -> None:
    random = np.random.default_rng(0)
    few, many = (ks_distance(random.normal(size=n), random.normal(0.05, size=n)) for n in (200, 50_000))
    assert many.p < 1e-6 < few.p
    assert many.effect < 0.05


def test_total_variation_by_hand() -> None:
    found = total_variation([10, 30, 0], [30, 0, 10])
    assert found.effect == pytest.approx(0.75)
    assert found.p < 1e-6
    assert total_variation([5, 5], [50, 50]).effect == 0
    assert psi([1, 1], [1, 1]) == 0


def test_adjusted_p_values_are_scipys_and_gaps_stay() -> None:
    p = np.array([0.001, 0.2, 0.03, 0.04, 0.9])
    assert benjamini_hochberg(p) == pytest.approx(stats.false_discovery_control(p))
    assert np.isnan(benjamini_hochberg([0.01, np.nan])[1])


def test_auc_is_sklearns_and_its_interval_covers() -> None:
    random = np.random.default_rng(0)
    hits = 0
    for _ in range(200):
        one, other = random.normal(size=80), random.normal(0.5, size=60)
        found = auc(one, other)
        truth = stats.norm.cdf(0.5 / np.sqrt(2))
        hits += found.low <= truth <= found.high
    scores = np.concatenate([one, other])
    assert found.value == pytest.approx(roc_auc_score(np.repeat([0, 1], [80, 60]), scores))
    assert 0.88 <= hits / 200 <= 0.99


@pytest.mark.parametrize("concept", [False, True])
def test_a_loss_is_split_into_its_true_parts(concept: bool) -> None:
    """Hard rows (x = 1) are right in 60 %, easy ones in 90 %; their share goes from 20 % to 60 %."""
    random = np.random.default_rng(1)
    before, after = random.random(4000) < 0.2, random.random(4000) < 0.6
    rate = np.array([0.9, 0.6])
    right_before = random.random(4000) < rate[before.astype(int)]
    right_after = random.random(4000) < (rate - (0.2 if concept else 0))[after.astype(int)]
    weights = np.where(before, 0.6 / 0.2, 0.4 / 0.8)
    gap = performance_gap(right_before, weights, right_after, 300, random)
    assert gap.covariate[1] <= 0.12 <= gap.covariate[2]
    truth = 0.2 if concept else 0.0
    assert gap.conditional[1] <= truth <= gap.conditional[2]
    assert gap.total[0] == pytest.approx(gap.covariate[0] + gap.conditional[0])
    assert gap.effective_sample_size == pytest.approx(weights.sum() ** 2 / (weights**2).sum())


def test_unevenness_names_the_feature_along_which_the_error_rose() -> None:
    random = np.random.default_rng(2)
    along, aside = (random.integers(0, 5, 6000) for _ in range(2))
    before = random.random(3000) < 0.9
    after = random.random(3000) < np.where(along[3000:] == 3, 0.4, 0.9)
    found = error_change_by_feature(before, along[:3000], after, along[3000:])
    other = error_change_by_feature(before, aside[:3000], after, aside[3000:])
    assert found.worst == 3
    assert found.p < 1e-6 < 0.001 < other.p
    assert found.spread == pytest.approx(0.2, abs=0.04)  # sd of (0, 0, 0, .5, 0)
    assert other.spread < 0.05


def test_unevenness_without_enough_rows_is_not_known() -> None:
    assert np.isnan(error_change_by_feature([1, 0], [0, 1], [1, 0], [0, 1]).spread)
