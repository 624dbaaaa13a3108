"""Alarms against known changes, and the online estimate against the offline metric it estimates."""

from __future__ import annotations

import numpy as np
import pytest

from driftline.errors import UserError
from driftline.metrics.drift_detection import estimate_changes, match_alarms, quality_gained
from driftline.metrics.online_tas import online_tas, online_ttr
from driftline.metrics.temporal import adaptation_score, transfer_ratio

A = np.array([[0.80, 0.72, 0.45, 0.60], [0, 0.75, 0.66, 0.63], [0, 0, 0.60, 0.80], [0, 0, 0, 0.70]])


def test_by_hand() -> None:
    found = match_alarms(alarms=[1, 5, 6, 12, 30], changes=[5, 10, 20], patience=5)
    assert found.delays == (0, 2, None)
    assert (found.found, found.missed, found.false_alarms, found.delay) == (2, 1, 3, 1.0)


def test_no_alarms_no_changes() -> None:
    assert match_alarms([], [3]).missed == 1
    assert match_alarms([2, 4], []).false_alarms == 2
    assert np.isnan(match_alarms([], []).delay)
    with pytest.raises(UserError, match="patience"):
        match_alarms([], [], patience=-1)


def test_an_alarm_before_the_change_is_no_detection() -> None:
    assert match_alarms([9], [10]) == (0, 1, 1, pytest.approx(np.nan, nan_ok=True), (None,))


def test_harm_is_weighted_by_rows() -> None:
    assert quality_gained([0.5, 0.5], [0.7, 0.5], weights=[3, 1]) == pytest.approx(0.15)


def test_change_points_are_where_last_periods_model_fails() -> None:
    assert estimate_changes(transfer_ratio(A), min_loss=0.05) == []
    assert estimate_changes(transfer_ratio(A), min_loss=0.02) == [1]


def test_online_is_offline_with_the_future_cut_off() -> None:
    for end in (2, 3, 4):
        cut = A[:end, :end]
        now = online_tas(A[0, 1:end], np.diag(A)[1:end])[-1]
        assert now == pytest.approx(adaptation_score(cut).values[0])
    assert online_ttr(A[0, 1:], np.diag(A)[1:]) == pytest.approx(transfer_ratio(A)[0, 1:])


def test_online_never_uses_the_future() -> None:
    random = np.random.default_rng(0)
    old, fresh = random.random(8), random.random(8)
    for known in range(1, 8):
        changed = [np.concatenate([x[:known], random.random(8 - known)]) for x in (old, fresh)]
        assert np.array_equal(online_tas(*changed)[:known], online_tas(old, fresh)[:known])


def test_online_needs_pairs() -> None:
    with pytest.raises(UserError, match="one accuracy per period"):
        online_tas([1.0], [1.0, 0.5])
    assert np.isnan(online_tas([0.0], [0.0])[0])
