"""Labels arrive when they became known: a policy that would profit from early ones does not get them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.neighbors import KNeighborsClassifier

import driftline
from driftline.auditing.alarms import ErrorRate, OnlineTAS, replay_alarms, start_of_replay
from driftline.auditing.arrivals import Arrivals, Training
from driftline.auditing.examples import table
from driftline.auditing.frame import read_frame
from driftline.auditing.replay import (
    NEVER,
    Replay,
    recalibrated_replay,
    schedule_replay,
    schedules,
    train_and_answer,
    training_rows,
)
from driftline.auditing.table import AuditTable, Limits, prepare
from driftline.cli.main import main
from driftline.errors import UserError

SIZE, PERIODS = 60, 8
NEAREST = KNeighborsClassifier(1)


def audited(frame: pd.DataFrame, delay: int = 0, period: str = f"{SIZE} rows", **more: Any) -> AuditTable:
    return prepare(read_frame(frame, time="when", target="y", **more), NEAREST, period, delay, 0, Limits(), 2)


def replay(given: AuditTable, name: str) -> Replay:
    plan = schedules(given)[name]
    fitted: dict[Training, Any] = {}
    for k, training in plan.items():
        fitted.setdefault(training, {}).update(train_and_answer(given, training, [k]))
    return schedule_replay(given, plan, fitted)


def repeating() -> pd.DataFrame:
    """Random labels; the second half of a period repeats inputs and labels of the first half of the one before."""
    random = np.random.default_rng(0)
    keys, labels = random.normal(size=(PERIODS + 1, SIZE // 2)), random.choice(["a", "b"], (PERIODS + 1, SIZE // 2))
    key, y = (np.hstack([part[1:], part[:-1]]).ravel() for part in (keys, labels))
    return pd.DataFrame({"when": np.arange(len(key)), "key": key, "y": y})


def accuracy_of_repeats(given: AuditTable, done: Replay, rows: slice = slice(SIZE // 2, None)) -> float:
    right = [(done.answers[k].prediction == given.periods[k].y)[rows] for k in done.answers]
    return float(np.concatenate(right).mean())


@pytest.mark.parametrize("name", ["window-2", "all-history", "every-2"])
def test_a_model_that_would_profit_from_early_labels_does_not_get_them(name: str) -> None:
    frame = repeating()
    at_once = audited(frame.assign(known=frame["when"]), label_time="known")
    late = audited(frame.assign(known=frame["when"] + SIZE), label_time="known")
    if name != "every-2":
        assert accuracy_of_repeats(at_once, replay(at_once, name)) == 1.0
    assert accuracy_of_repeats(late, replay(late, name)) == pytest.approx(0.5, abs=0.12)
    even = frame["when"] % 2 == 0
    mixed = audited(frame.assign(known=frame["when"] + np.where(even, 0, SIZE)), label_time="known")
    if name != "every-2":
        done = replay(mixed, name)
        assert accuracy_of_repeats(mixed, done, slice(SIZE // 2, None, 2)) == 1.0
        assert accuracy_of_repeats(mixed, done, slice(SIZE // 2 + 1, None, 2)) == pytest.approx(0.5, abs=0.15)


def test_no_training_has_a_label_from_after_the_start_of_its_period() -> None:
    random = np.random.default_rng(1)
    frame = repeating()
    known = frame["when"] + random.exponential(SIZE, len(frame))
    given = audited(frame.assign(known=known.mask(random.random(len(frame)) < 0.1)), label_time="known")
    for plan in schedules(given).values():
        for k, training in plan.items():
            assert (np.asarray(training_rows(given, training).known) < given.starts[k]).all()
    everything = training_rows(given, schedules(given)["all-history"][PERIODS - 1])
    assert len(everything) == (given.frame.samples.known < given.starts[-1]).sum()  # type: ignore[operator]


def test_label_times_one_period_later_are_a_delay_of_one() -> None:
    frame = table("concept", rows=SIZE * 9).assign(when=np.arange(SIZE * 9)).drop(columns="color")
    timed = audited(frame.assign(known=frame["when"] + SIZE), label_time="known")
    late = audited(frame, delay=1)
    assert timed.first_replayed == late.first_replayed == 3
    assert schedules(timed) == schedules(late)
    for run in (
        lambda t: recalibrated_replay(t, replay(t, NEVER)),
        lambda t: replay_alarms(t, ErrorRate, start_of_replay(t)),
        lambda t: replay_alarms(t, lambda: OnlineTAS(t), start_of_replay(t)),
    ):
        one, other = run(timed), run(late)
        assert (one.alarms, one.trainings, one.rows) == (other.alarms, other.trainings, other.rows)
        assert all((one.answers[k].prediction == other.answers[k].prediction).all() for k in other.answers)


def test_sixty_days_are_two_months() -> None:
    months = pd.date_range("2023-01-01", periods=10, freq="MS")
    when = np.concatenate([month + pd.to_timedelta(np.arange(2, 28), unit="D") for month in months])
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"when": when, "x": random.normal(size=len(when)), "y": random.choice(["a", "b"], len(when))})
    days, longer = (audited(frame, period="month", label_delay=late) for late in ("60d", "62d"))
    periods = audited(frame, 2, "month")
    assert schedules(longer) == schedules(periods)
    assert days.arrivals.known_from[:7] == periods.arrivals.known_from[:7] == (3, 4, 5, 6, 7, 8, 9)
    before = days.arrivals.due[2] < 5  # 3 March + 60 days is 2 May, before the first row of May
    assert before.tolist() == [True] + [False] * 25


def test_a_period_counts_once_half_of_its_arriving_labels_are_known() -> None:
    due = (np.array([1, 2, 3, 9]), np.array([2, 4, 4]), np.array([9, 9]))
    rows = audited(repeating()).periods
    arrivals = Arrivals(tuple(rows[k][: len(part)] for k, part in enumerate(due)), due)
    arrivals = Arrivals((*arrivals.periods, *rows[3:8]), (*due, *(np.full(SIZE, 9) for _ in range(5))))
    assert arrivals.known_from[:3] == (2, 4, 9), "9: never, with eight periods"
    assert [arrivals.newest(k) for k in (1, 2, 4)] == [-1, 0, 1]
    assert arrivals.arriving(4) == [1]
    assert arrivals.training(range(3), 3) == Training((0, 1), 3)
    assert arrivals.count(Training((0, 1), 3)) == 4
    assert arrivals.window(1, 4) == Training((1,), 4)


BAD = [
    ({"label_time": "knwon"}, "no column of the frame 'knwon'"),
    ({"label_time": "color"}, "time column 'color'"),
    ({"label_time": "a"}, "the time column has dates and label time column 'a' has numbers"),
    ({"label_time": "when"}, "must be different columns"),
    ({"label_time": "early"}, "400 labels have a 'early' before the 'when' of their rows"),
    ({"label_time": "known", "delay": "60d"}, "the label times say how late labels are: leave out the delay"),
    ({"label_time": "known", "features": ["a", "known"]}, "label time column 'known' cannot be a feature"),
    ({"delay": "60 moons"}, "a time such as 12h, 60d or 8w"),
    ({"delay": "900d"}, "become known only in or after the last period"),
]


@pytest.mark.parametrize(("wrong", "sentence"), BAD)
def test_mistakes_get_a_sentence(wrong: dict[str, Any], sentence: str) -> None:
    frame = table(rows=400)
    frame["known"], frame["early"] = (frame["when"] + pd.Timedelta(days=days) for days in (9, -9))
    with pytest.raises(UserError, match=sentence):
        driftline.audit(frame, time="when", target="y", model="naive-bayes", **wrong)


def test_the_page_says_when_labels_arrive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = table("concept", rows=300)[["when", "b", "y"]]
    frame["b"] = np.where(frame["b"] > 0, "yes", "no")
    frame["known"] = (frame["when"] + pd.Timedelta(days=70)).dt.strftime("%Y-%m-%d %H:%M:%S.%f")
    frame.to_csv(tmp_path / "log.csv", index=False)
    monkeypatch.chdir(tmp_path)
    options = ["--time", "when", "--target", "y", "--predictions", "b", "--period", "50 rows", "--jobs", "1"]
    monkeypatch.setattr(sys, "argv", ["driftline", "audit", "log.csv", *options, "--label-time", "known"])
    with pytest.raises(SystemExit) as end:
        main()
    assert not end.value.code
    numbers = json.loads(Path("audit.json").read_text("utf-8"))
    assert numbers["data"]["features"] == []
    assert (numbers["data"]["label_delay"], numbers["data"]["label_time"]) == (0, "known")
    assert "a label is revealed when it became known (column known)" in Path("audit.html").read_text("utf-8")
    output = {"time": "when", "target": "y", "predictions": "b", "period": "50 rows"}
    after = driftline.audit(frame.drop(columns="known"), **output, delay="70d")  # type: ignore[arg-type]
    after.write("after.html", "after.json")
    assert "a label is revealed 70d after its row" in Path("after.html").read_text("utf-8")
    assert "known 1 period(s) late (median)" in " ".join(after.data.notes)
    assert json.loads(Path("after.json").read_text("utf-8"))["log_alarms"] == numbers["log_alarms"]
