"""When each policy retrains, on what, and what it counts."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from driftline.errors import UserError
from driftline.learners.policies import AllHistory, EveryK, Never, OnOnlineTas, Policy, Window
from driftline.models.estimator import naive_bayes
from driftline.seeds import Seed
from driftline.tasks import Classification

TASK = Classification(("no", "yes"))


def lesson(k: int, turned: bool = False, n: int = 200) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(k)
    x = random.normal(size=(n, 2))
    return x, ((x[:, 0] > 0) != turned).astype(int)


def taught(policy: Policy, lessons: list[tuple[np.ndarray, np.ndarray]]) -> Any:
    policy.prepare(naive_bayes((2,), 2, Seed(0)), TASK)
    for x, y in lessons:
        policy.answer(x)
        policy.learn(x, y)
    return policy


@pytest.mark.parametrize(
    ("policy", "retrained", "rows"),
    [
        (Never(), [0], 200),
        (EveryK(k=2), [0, 2, 4], 200 + 600 + 1000),
        (Window(window=2), [0, 1, 2, 3, 4], 200 + 4 * 400),
        (AllHistory(), [0, 1, 2, 3, 4], 200 * 15),
        (AllHistory(most=300), [0, 1, 2, 3, 4], 200 + 4 * 300),
    ],
)
def test_when_and_on_how_much(policy: Policy, retrained: list[int], rows: int) -> None:
    done = taught(policy, [lesson(k) for k in range(5)])
    assert done.retrained == retrained
    assert done.rows == rows


def test_online_tas_retrains_after_the_change_and_counts_its_challengers() -> None:
    done = taught(OnOnlineTas(window=1), [lesson(k, turned=k >= 3) for k in range(6)])
    assert done.retrained == [0, 3]
    assert done.estimates[:2] == pytest.approx([1, 1], abs=0.05)
    assert done.estimates[2] < 0.9
    assert done.ratios[2] < done.estimates[2], "the mean since deployment lags behind the latest period"
    assert done.rows == 200 + 5 * 160 + 200


@pytest.mark.parametrize("name", ["adwin", "page-hinkley", "kswin", "ddm"])
def test_detectors_retrain_after_the_change(name: Any) -> None:
    pytest.importorskip("river")
    from driftline.learners.detectors import OnDetector

    make = partial(OnDetector, detector=name, window=1, signals=200)
    done = taught(make(), [lesson(k, turned=k >= 3) for k in range(6)])
    assert done.retrained[0] == 0
    assert 3 in done.alarms
    if name != "kswin":  # which also fires now and then on nothing
        assert done.alarms[0] == 3


def test_nonsense_is_refused() -> None:
    for policy in (Window(window=0), EveryK(k=0), OnOnlineTas(holdout=1.0), AllHistory(most=0)):
        with pytest.raises(UserError):
            taught(policy, [])
