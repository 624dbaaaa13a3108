"""Nothing of the future is ever used: with every later row changed, all that came before is the same, bit for bit."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

from driftline.auditing.alarms import replay_alarms, start_of_replay, watches
from driftline.auditing.examples import table
from driftline.auditing.frame import read_frame
from driftline.auditing.matrix import evaluate, split_halves
from driftline.auditing.metric import CLASS_METRICS
from driftline.auditing.replay import Replay, schedule_replay, schedules, train_and_answer
from driftline.auditing.table import AuditTable, Limits, prepare
from driftline.testing import digest

pytestmark = pytest.mark.xdist_group("time-order")  # what all its tests use is made once

PERIODS, POISONED = 8, 5  # of eight periods, those from the sixth on are changed


def set_up(frame: pd.DataFrame, **more: Any) -> AuditTable:
    frame_ = read_frame(frame, time="when", target=more.pop("target", "y"))
    limits = Limits(rows=80, training_rows=120, probe_rows=50)
    return prepare(frame_, more.get("model", "logistic-regression"), "100 rows", more.get("delay", 0), 0, limits)


def poisoned(frame: pd.DataFrame) -> pd.DataFrame:
    random, frame = np.random.default_rng(9), frame.copy()
    late = np.arange(len(frame)) >= 100 * POISONED
    frame.loc[late, "a"] = random.normal(50, 9, late.sum())
    frame.loc[late, "b"] = np.nan
    frame.loc[late, "color"] = random.choice(["never seen", "red"], late.sum())
    if frame["y"].dtype == float:
        frame.loc[late, "y"] = random.normal(1e3, 1e3, late.sum())
    else:
        frame.loc[late, "y"] = random.choice(["yes", "no"], late.sum())
    return frame


def history(done: Replay, delay: int) -> list[Any]:
    """Return all answers and decisions of a policy before the poisoned labels are revealed."""
    known = POISONED - delay
    return [
        [done.answers[k].prediction for k in sorted(done.answers) if k < POISONED],
        [k for k in done.trainings if k < POISONED],
        [k for k in done.alarms if k < known],
    ]


start = cache(start_of_replay)  # the same for all policies on a table


def replay(audited: AuditTable, name: str) -> Replay:
    if name in watches(audited, river=True):
        return replay_alarms(audited, watches(audited, river=True)[name], start(audited))
    plan = schedules(audited)[name]
    fitted: dict[Any, Any] = {}
    for k, training in plan.items():
        fitted.setdefault(training, {}).update(train_and_answer(audited, training, [k]))
    return schedule_replay(audited, plan, fitted)


NAMES = ("never", "window-2", "all-history", "every-2-all", "on-error-rate", "on-online-tas", "on-adwin")


def classes(frame: pd.DataFrame) -> pd.DataFrame:
    return frame


def numbers(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(y=frame["a"] + np.where(frame["y"] == "yes", 1.0, 0.0))


@cache
def pair(kind: Any, delay: int) -> tuple[AuditTable, AuditTable]:
    """Return the table and the same with its future changed."""
    clean = kind(table("concept", rows=800))
    return set_up(clean, delay=delay), set_up(poisoned(clean), delay=delay)


@pytest.mark.parametrize("delay", [0, 1])
@pytest.mark.parametrize("kind", [classes, numbers])
@pytest.mark.parametrize("name", NAMES)
def test_no_policy_knows_the_future(name: str, kind: Any, delay: int) -> None:
    if name == "on-adwin":
        pytest.importorskip("river")
    one, other = pair(kind, delay)
    first, second = (replay(s, name) for s in (one, other))
    assert digest(history(first, delay)) == digest(history(second, delay))
    answers = [[done.answers[k].prediction for k in sorted(done.answers)] for done in (first, second)]
    assert digest(answers[0]) != digest(answers[1]), "the poison must matter, or this proves nothing"


def test_no_model_of_the_matrix_knows_other_periods() -> None:
    clean = table("concept", rows=800)
    raw = []
    for frame in (clean, poisoned(clean)):
        audited = set_up(frame)
        halves = split_halves(audited)
        before = halves.periods[0] < POISONED * halves.pieces
        raw.append(evaluate(audited, halves, [CLASS_METRICS["accuracy"]], 0, 1).raw[before])
    np.testing.assert_array_equal(raw[0], raw[1])


def test_a_policy_that_peeks_would_be_found_out() -> None:
    """The same comparison, with an encoding fitted on the whole table, fails: the test can tell."""
    clean = table("concept", rows=800)
    answers = []
    for frame in (clean, poisoned(clean)):
        spread = frame["a"].std()  # of all time
        scaled = frame.assign(a=(frame["a"] / spread).round(1))
        answers.append(history(replay(set_up(scaled), "all-history"), 0))
    assert digest(answers[0]) != digest(answers[1])
