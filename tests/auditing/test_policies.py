"""On a real table, the replay gives the numbers of a plain loop that anyone could have written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits

from driftline.auditing.frame import read_frame
from driftline.auditing.policies import compare_policies, policies, recommend_policy, replay
from driftline.auditing.table import AuditTable, Limits, prepare
from driftline.seeds import Seed

pytestmark = pytest.mark.xdist_group("by-hand")  # what all its tests use is made once

SIZE, PERIODS = 100, 10
FEATURES = ["day", "period", "nswprice", "nswdemand", "vicprice", "vicdemand", "transfer"]


@pytest.fixture(scope="module")
def elec2() -> pd.DataFrame:
    from driftline.data import data_folders

    for folder in data_folders():
        path: Path = folder / "tabular" / "elec2.csv.gz"
        if path.exists():
            return pd.read_csv(path, nrows=SIZE * PERIODS)
    pytest.skip("no elec2.csv.gz here: set DRIFTLINE_DATA to a folder that holds tabular/elec2.csv.gz")


@pytest.fixture(scope="module")
def audited(elec2: pd.DataFrame) -> AuditTable:
    frame = read_frame(elec2, time="date", target="class", features=FEATURES)
    return prepare(frame, "hist-gradient-boosting", f"{SIZE} rows", 0, 0, Limits(), 0.2)


def by_hand(frame: pd.DataFrame, retrain_after: dict[int, range]) -> list[float]:
    """Accuracy in each period but the first; `retrain_after` says after which period to train on which ones."""
    seed = Seed(0).child("init").value % 2**32
    x, y = frame[FEATURES].to_numpy(float), frame["class"].to_numpy()
    rows = [np.arange(k * SIZE, (k + 1) * SIZE) for k in range(PERIODS)]
    accuracies, model = [], None
    for k in range(PERIODS):
        if model is not None:
            accuracies.append(float((model.predict(x[rows[k]]) == y[rows[k]]).mean()))
        if k in retrain_after:
            used = np.concatenate([rows[j] for j in retrain_after[k]])
            model = HistGradientBoostingClassifier(max_iter=100, random_state=seed).fit(x[used], y[used])
    return accuracies


PLANS = {
    "never": {0: range(1)},
    "every-4": {k: range(k + 1) for k in (0, 4, 8)},
    "window-3": {k: range(max(0, k - 2), k + 1) for k in range(PERIODS)},
    "all-history": {k: range(k + 1) for k in range(PERIODS)},
}


@pytest.mark.parametrize("name", PLANS)
def test_a_plain_loop_gives_the_same_numbers(elec2: pd.DataFrame, audited: AuditTable, name: str) -> None:
    with threadpool_limits(1):
        done = {each: replay(audited, policies(PERIODS)[each]) for each in {name, "never"}}
        expected = by_hand(elec2, PLANS[name])
    *results, trivial = compare_policies(audited, done)
    (result,) = [result for result in results if result.policy == name]
    assert trivial.policy == "trivial"
    assert [period.value for period in result.by_period] == expected
    assert result.quality.value == pytest.approx(np.mean(expected), abs=1e-12)
    assert result.retrainings == len(PLANS[name]) - 1
    assert result.rows == sum(len(used) for used in PLANS[name].values()) * SIZE


def test_the_recommendation_is_the_rule_applied_to_the_numbers(audited: AuditTable) -> None:
    with threadpool_limits(1):
        done = {name: replay(audited, policies(PERIODS)[name]) for name in ("never", "window-3", "every-4")}
    *results, _ = compare_policies(audited, done)
    best = max(results, key=lambda result: result.quality.value)
    tied = [result for result in results if result is best or result.behind.low <= 0.005]
    assert recommend_policy(results).policy == min(tied, key=lambda result: result.rows).policy
    assert recommend_policy(results).best == best.policy
