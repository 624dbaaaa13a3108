"""The trivial baseline stands beside every model, and a model that does not beat it gets no other verdict."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import driftline
from driftline.auditing import AuditResult
from driftline.auditing.examples import table

pytestmark = pytest.mark.xdist_group("audit-baseline")  # what all its tests use is made once

QUICK: dict[str, Any] = {
    "time": "when",
    "target": "y",
    "period": "100 rows",
    "quick": True,
    "model": "logistic-regression",
}


@pytest.fixture(scope="module")
def coin() -> AuditResult:
    """An audit of a target that no feature says anything about, two thirds of it one class."""
    y = np.random.default_rng(0).choice(["no", "yes"], 600, p=[1 / 3, 2 / 3])
    return driftline.audit(table("none", rows=600).assign(y=y), **QUICK)


def test_a_model_at_chance_gets_no_other_verdict(coin: AuditResult) -> None:
    assert coin.sizes[0].above.low <= 0
    assert "not surely better than a constant answer" in coin.answers[0].text
    assert "Caution: the model is not significantly better" in coin.answers[0].text
    assert coin.verdict is not None
    assert not (coin.verdict.aged)
    assert not (coin.verdict.miscalibrated)
    assert not (coin.verdict.unordered)
    assert coin.policies is not None
    assert coin.policies.recommendation.reason == "unknown"


def test_the_policy_that_knows_labels_alone_by_hand(coin: AuditResult) -> None:
    y = np.random.default_rng(0).choice(["no", "yes"], 600, p=[1 / 3, 2 / 3])
    frame = table("none", rows=600).assign(y=y).sort_values("when", kind="stable")
    periods = [part["y"] for _, part in frame.groupby(np.arange(600) // 100)]
    right = [(periods[k] == pd.concat(periods[:k]).mode()[0]).mean() for k in range(2, 6)]
    assert coin.policies is not None
    *others, last = coin.policies.results
    assert last.policy == "trivial"
    assert [period.value for period in last.by_period] == pytest.approx(right)
    assert last.quality.value == pytest.approx(np.mean(right))
    assert (last.rows, last.retrainings) == (0, 0)
    assert not last.on_frontier
    for row in others:
        assert row.above_trivial.value == pytest.approx(row.quality.value - last.quality.value)
    assert "trivial" not in coin.policies.recommendation.shortlist


def test_a_log_of_numbers_has_a_baseline_too() -> None:
    y = np.random.default_rng(5).normal(size=400)
    found = driftline.audit(
        table("none", rows=400).assign(y=y, logged=0.0), **{**QUICK, "model": None}, predictions="logged"
    )
    assert found.log is not None
    assert found.log.metric.name == "rmse"
    assert found.log.above.low <= 0
    assert "Caution: the model is not significantly better" in found.answers[0].text
    assert found.log.by_period[0].value == pytest.approx(float(np.sqrt(np.mean(y[:100] ** 2))))
