"""Nothing of the future is ever used: with every later row changed, all that came before is the same, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from driftline.auditing.decay import evaluate_models
from driftline.auditing.examples import table
from driftline.auditing.frame import read_frame
from driftline.auditing.policies import Replay, policies, replay
from driftline.auditing.table import AuditTable, Limits, prepare
from driftline.testing import digest

PERIODS, POISONED = 8, 5  # of eight periods, those from the sixth on are changed


def set_up(frame: pd.DataFrame, **more: Any) -> AuditTable:
    frame_ = read_frame(frame, time="when", target=more.pop("target", "y"))
    limits = Limits(rows=80, training_rows=120, probe_rows=50)
    return prepare(
        frame_, more.get("model", "hist-gradient-boosting"), "100 rows", more.get("delay", 0), 0, limits, 0.2
    )


def poisoned(frame: pd.DataFrame) -> pd.DataFrame:
    random, frame = np.random.default_rng(9), frame.copy()
    late = np.arange(len(frame)) >= 100 * POISONED
    frame.loc[late, "a"] = random.normal(50, 9, late.sum())
    frame.loc[late, "b"] = np.nan
    frame.loc[late, "colour"] = random.choice(["never seen", "red"], late.sum())
    if frame["y"].dtype == float:
        frame.loc[late, "y"] = random.normal(1e3, 1e3, late.sum())
    else:
        frame.loc[late, "y"] = random.choice(["yes", "no"], late.sum())
    return frame


def history(done: Replay, delay: int) -> list[Any]:
    """Return all answers and decisions of a policy before the poisoned labels are revealed."""
    known = POISONED - delay
    return [
        [answers for answers in done.answers[:POISONED]],
        [k for k in done.log.retrained_at if k < known],
        [k for k in done.log.alarms if k < known],
        done.log.online_tas[: known - 1],
    ]


def numbers(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(y=frame["a"] + np.where(frame["y"] == "yes", 1.0, 0.0))


@pytest.mark.parametrize("delay", [0, 1])
@pytest.mark.parametrize("kind", [lambda frame: frame, numbers])
@pytest.mark.parametrize("name", policies(PERIODS))
def test_no_policy_knows_the_future(name: str, kind: Any, delay: int) -> None:
    clean = kind(table("concept", rows=800))
    one, other = (set_up(frame, delay=delay, model="logistic-regression") for frame in (clean, poisoned(clean)))
    first, second = (replay(s, policies(PERIODS)[name]) for s in (one, other))
    assert digest(history(first, delay)) == digest(history(second, delay))
    assert digest(first.answers) != digest(second.answers), "the poison must matter, or this proves nothing"


def test_no_model_of_the_matrix_knows_the_future() -> None:
    clean = table("concept", rows=800)
    one, other = (evaluate_models(set_up(frame)) for frame in (clean, poisoned(clean)))
    names = set_up(clean).names[:POISONED]
    keep = [rows[(rows["step"] < POISONED) & rows["probe"].isin(names)] for rows in (one, other)]
    pd.testing.assert_frame_equal(*keep)
    assert not one["prediction"].equals(other["prediction"])


def test_a_policy_that_peeks_would_be_found_out() -> None:
    """The same comparison, with an encoding fitted on the whole table, fails: the test can tell."""
    clean = table("concept", rows=800)
    answers = []
    for frame in (clean, poisoned(clean)):
        spread = frame["a"].std()  # of all time
        scaled = frame.assign(a=(frame["a"] / spread).round(1))
        answers.append(
            replay(set_up(scaled, model="logistic-regression"), policies(PERIODS)["all-history"]).answers[:POISONED]
        )
    assert digest(answers[0]) != digest(answers[1])
