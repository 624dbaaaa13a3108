"""When each policy retrains, on what, and what it counts."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from driftline.errors import UserError
from driftline.learners.retraining.online_tas import RetrainOnTAS
from driftline.learners.retraining.schedules import ScheduledRetraining
from driftline.learners.supervised.base import SupervisedLearner
from driftline.models.sklearn_models import naive_bayes
from driftline.seeds import Seed
from driftline.tasks import Classification

TASK = Classification(("no", "yes"))


def batch(k: int, turned: bool = False, n: int = 200) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(k)
    x = random.normal(size=(n, 2))
    return x, ((x[:, 0] > 0) != turned).astype(int)


def trained(policy: SupervisedLearner, batches: list[tuple[np.ndarray, np.ndarray]]) -> Any:
    policy.prepare(naive_bayes((2,), 2, Seed(0)), TASK)
    for x, y in batches:
        policy.answer(x)
        policy.learn(x, y)
    return policy


@pytest.mark.parametrize(
    ("policy", "retrained_at", "n_train_rows"),
    [
        (ScheduledRetraining(k=0), [0], 200),
        (ScheduledRetraining(k=2), [0, 2, 4], 200 + 600 + 1000),
        (ScheduledRetraining(k=1, window=2), [0, 1, 2, 3, 4], 200 + 4 * 400),
        (ScheduledRetraining(k=1), [0, 1, 2, 3, 4], 200 * 15),
        (ScheduledRetraining(k=1, max_samples=300), [0, 1, 2, 3, 4], 200 + 4 * 300),
    ],
)
def test_when_and_on_how_much(policy: SupervisedLearner, retrained_at: list[int], n_train_rows: int) -> None:
    done = trained(policy, [batch(k) for k in range(5)])
    assert done.log().retrained_at == tuple(retrained_at)
    assert done.log().n_train_rows == n_train_rows


def test_online_tas_retrains_after_the_change_and_counts_its_challengers() -> None:
    done = trained(RetrainOnTAS(window=1), [batch(k, turned=k >= 3) for k in range(6)])
    assert done.log().retrained_at == (0, 3)
    assert done.estimates[:2] == pytest.approx([1, 1], abs=0.05)
    assert done.estimates[2] < 0.9
    assert done.ratios[2] < done.estimates[2], "the mean since deployment lags behind the latest period"
    assert done.log().n_train_rows == 200 + 5 * 160 + 200


@pytest.mark.parametrize("name", ["adwin", "page-hinkley", "kswin", "ddm"])
def test_detectors_retrain_after_the_change(name: Any) -> None:
    pytest.importorskip("river")
    from driftline.learners.retraining.drift_detector import RetrainOnDrift

    make = partial(RetrainOnDrift, detector=name, window=1, max_errors_fed=200)
    done = trained(make(), [batch(k, turned=k >= 3) for k in range(6)])
    assert done.log().retrained_at[0] == 0
    assert 3 in done.alarms
    if name != "kswin":  # which also fires now and then on nothing
        assert done.alarms[0] == 3


def test_nonsense_is_refused() -> None:
    for policy in (
        ScheduledRetraining(window=0),
        ScheduledRetraining(k=-1),
        RetrainOnTAS(holdout=1.0),
        ScheduledRetraining(max_samples=0),
    ):
        with pytest.raises(UserError):
            trained(policy, [])
