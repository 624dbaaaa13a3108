"""The e-detector by hand, and its rate of false alarms."""

from __future__ import annotations

import numpy as np

from driftline.monitoring import evidence


def test_by_hand() -> None:
    values, alarm = evidence.update(evidence.start(), np.array([1.0, -1.0, 0.5]))
    by_hand = []
    for bet in (0.05, 0.1, 0.2, 0.4):
        first = 1 + bet
        second = max(first, 1) * (1 - bet)
        by_hand.append(max(second, 1) * (1 + bet / 2))
    assert alarm is None
    np.testing.assert_allclose(values, by_hand, rtol=1e-12)


def test_an_old_monitor_is_as_fast_as_a_new_one() -> None:
    quiet = -0.5 * np.ones(5_000)
    old, _ = evidence.update(evidence.start(), quiet)
    change = np.ones(40)
    _, late = evidence.update(old, change)
    _, early = evidence.update(evidence.start(), change)
    assert late is not None
    assert early is not None
    assert late - early <= 1


def test_evidence_starts_anew_after_an_alarm() -> None:
    values, alarm = evidence.update(evidence.start(), np.ones(25))
    assert alarm == 24
    assert values.tolist() == evidence.start().tolist()


def test_false_alarms_are_rare_if_both_models_are_equally_good() -> None:
    """The bound is one in 1,000 rows in the worst case: a difference with mean 0."""
    random, alarms = np.random.default_rng(0), 0
    for _ in range(20):
        values = evidence.start()
        for _ in range(10):
            values, alarm = evidence.update(values, random.choice([-1.0, 0.0, 1.0], 200, p=[0.1, 0.8, 0.1]))
            alarms += alarm is not None
    assert alarms <= 40  # of 40,000 rows
