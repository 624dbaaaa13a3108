"""Histograms then and now: every row is in a bin or missing, on one set of bins."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from driftline.auditing.histograms import MAX_CATEGORIES, OTHER, Histogram, histogram, now_periods


def totals(both: Histogram) -> tuple[float, float]:
    return sum(both.then) + both.missing_then, sum(both.now) + both.missing_now


def test_numbers_beyond_the_bins_count_in_the_outer_ones() -> None:
    random = np.random.default_rng(0)
    then, now = pd.Series(random.normal(size=800)), pd.Series(random.normal(2, size=800))
    now.iloc[0], then.iloc[:80] = 1e9, np.nan
    both = histogram(then, now)
    assert both.edges[-1] < 10
    assert len(both.edges) == len(both.then) + 1 == len(both.now) + 1
    assert totals(both) == pytest.approx((1, 1))
    assert both.missing_then == pytest.approx(0.1)
    assert both.now[-1] > 0


def test_rare_categories_share_a_bin_and_new_ones_are_seen() -> None:
    then = pd.Series(["a"] * 60 + ["b"] * 30 + [f"r{k}" for k in range(10)], dtype="category")
    now = pd.Series(["b"] * 50 + ["new"] * 40 + [None] * 10, dtype="category")
    both = histogram(then, now)
    shares = dict(zip(both.categories, zip(both.then, both.now, strict=True), strict=True))
    assert len(both.categories) == MAX_CATEGORIES + 1
    assert both.categories[-1] == OTHER
    assert shares["b"] == pytest.approx((0.3, 0.5))
    assert shares["new"] == pytest.approx((0, 0.4))
    assert totals(both) == pytest.approx((1, 1))
    assert both.missing_now == pytest.approx(0.1)


def test_a_constant_has_one_bin_and_texts_have_lengths() -> None:
    assert histogram(pd.Series([2.5] * 9), pd.Series([2.5] * 9)).edges[0] < 2.5
    texts = pd.Series([f"it was {k} o'clock when he came {'home ' * (k % 5)}" for k in range(200)], dtype=object)
    both = histogram(texts, texts)
    assert both.measure == "length in characters"
    assert both.then == both.now
    days = pd.Series(pd.date_range("1970-01-03", periods=4))
    assert (histogram(days, days).measure, histogram(days, days).edges[0]) == ("days since 1970", 1.5)


def test_now_is_at_most_three_periods_and_a_third() -> None:
    assert [now_periods(count) for count in (2, 4, 6, 9, 200)] == [1, 1, 2, 3, 3]


@pytest.mark.parametrize("value", [0, 3, 2**53, 2**63, 1e300, -(2.0**60)])
def test_a_constant_has_bins_also_where_adding_a_half_changes_nothing(value: float) -> None:
    both = histogram(pd.Series([value] * 30), pd.Series([value] * 30))
    assert totals(both) == pytest.approx((1, 1))
    assert (np.diff(both.edges) > 0).all()
