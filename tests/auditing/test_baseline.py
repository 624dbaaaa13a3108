"""The trivial baseline: computed by hand, in every audit, and a caution where a model does not beat it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import driftline
from driftline.auditing import AuditResult
from driftline.auditing.decay import Decay
from driftline.auditing.estimate import Estimate
from driftline.auditing.examples import table
from driftline.auditing.policies import recommend_policy

pytestmark = pytest.mark.xdist_group("audit-baseline")  # what all its tests use is made once

QUICK: dict[str, Any] = {"time": "when", "target": "y", "period": "100 rows", "model": "logistic-regression"}


@pytest.fixture(scope="module")
def coin() -> AuditResult:
    """An audit of a target that no feature says anything about, two thirds of it one class."""
    y = np.random.default_rng(0).choice(["no", "yes"], 600, p=[1 / 3, 2 / 3])
    return driftline.audit(table("none", rows=600).assign(y=y), **QUICK)


def test_a_model_at_chance_is_not_left_without_a_word(coin: AuditResult) -> None:
    assert coin.baseline.above.low <= 0
    assert "Caution: the model is not significantly better than the baseline" in coin.answers[0].text
    assert "not significantly better than the trivial baseline" in coin.answers[3].text
    assert "Trivial baseline (the most frequent class of the training rows of each model" in coin.answers[0].text


def test_a_model_that_knows_something_is_above_the_baseline() -> None:
    found = driftline.audit(table("none", rows=600), **QUICK)
    assert found.baseline.above.low > 0
    assert "Caution" not in str(found)
    assert "Trivial baseline" in str(found)
    assert isinstance(found.decay, Decay)
    assert found.baseline.tas is not None
    assert found.baseline.tas.value > found.decay.tas.value  # why it must be shown


def test_the_policy_that_knows_labels_alone_by_hand(coin: AuditResult) -> None:
    y = np.random.default_rng(0).choice(["no", "yes"], 600, p=[1 / 3, 2 / 3])
    frame = table("none", rows=600).assign(y=y).sort_values("when", kind="stable")
    periods = [part["y"] for _, part in frame.groupby(np.arange(600) // 100)]
    right = [(periods[k] == pd.concat(periods[:k]).mode()[0]).mean() for k in range(1, 6)]
    assert coin.policies is not None
    *others, last = coin.policies.results
    assert last.policy == "trivial"
    assert [period.value for period in last.by_period] == pytest.approx(right)
    assert last.quality.value == pytest.approx(np.mean(right))
    assert (last.rows, last.retrainings) == (0, 0)
    assert last.above_trivial == Estimate(0.0, 0.0, 0.0)
    for row in others:
        assert row.above_trivial.value == pytest.approx(row.quality.value - last.quality.value)


def test_the_baseline_is_never_recommended(coin: AuditResult) -> None:
    assert coin.policies is not None
    *others, last = coin.policies.results
    best = replace(last, quality=Estimate(1.0, 1.0, 1.0), behind=Estimate(-1.0, -1.0, -1.0))
    assert recommend_policy([*others, best]).policy != "trivial"
    assert "trivial" not in coin.policies.recommendation.shortlist


@pytest.mark.parametrize("log", [True, False])
def test_numbers_and_logs_have_a_baseline_too(log: bool) -> None:
    y = np.random.default_rng(5).normal(size=400)
    frame = table("none", rows=400).assign(y=y, said=0.0)
    found = driftline.audit(frame, **QUICK, **({"prediction": "said"} if log else {}))
    assert found.baseline.protocol.startswith("the mean of the " + ("first period" if log else "training rows"))
    assert found.baseline.above.low <= 0
    assert "Caution: the model is not significantly better" in found.answers[0].text
    assert "trivial" in found.html() if not log else "Trivial baseline" in found.html()
