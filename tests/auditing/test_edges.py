"""Tables on which some numbers cannot be known: the others are given, and the missing ones are named."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np
import pandas as pd
import pytest

import driftline
from driftline.auditing.examples import table
from driftline.auditing.work import carry_out
from driftline.errors import UserError

QUICK: dict[str, Any] = {"time": "when", "target": "y", "period": "100 rows", "model": "logistic"}


@pytest.mark.filterwarnings("ignore:The number of unique classes")
def test_a_target_that_nobody_can_answer_leaves_ratios_unknown() -> None:
    frame = table(rows=600).assign(y=[f"c{k}" for k in range(600)])
    found = driftline.audit(frame, **QUICK)
    assert found.headline["tas"] is None
    assert "How long a model is valid (SH) is not known" in found.answers[1].text
    (row,) = [row for row in found.numbers["policies"] if row["policy"] == "on-online-tas"]
    assert row["online_tas"] == row["online_ttr"] == [None] * 5
    assert "Driftline audit" in found.html()


@pytest.mark.filterwarnings("error:Mean of empty slice")
@pytest.mark.parametrize(("first", "last"), [(300, 600), (0, 300), (100, 500), (200, 400)])
@pytest.mark.parametrize("log", [False, True])
def test_constant_numbers_for_a_long_time(first: int, last: int, log: bool) -> None:
    y = np.random.default_rng(0).normal(size=600)
    y[first:last] = 0.0
    more: dict[str, Any] = {"prediction": "said"} if log else {}
    found = driftline.audit(table(rows=600).assign(y=y, said=0.5), **QUICK, **more)
    json.dumps(found.numbers, allow_nan=False)
    assert "Driftline audit" in found.html()
    if not log:
        assert "When decay becomes evident (DH) is not known" in str(found)


def test_constant_numbers_for_ever_are_refused() -> None:
    y = np.r_[np.random.default_rng(0).normal(size=100), np.zeros(500)]
    with pytest.raises(UserError, match="the target is the same throughout each period"):
        driftline.audit(table(rows=600).assign(y=y), **QUICK)


def test_one_time_for_all_rows_is_no_course_of_time() -> None:
    with pytest.raises(UserError, match=r"every row has the same time, 2020-01-01"):
        driftline.audit(table(rows=400).assign(when="2020-01-01"), **{**QUICK, "period": "auto"})


def test_cuts_among_rows_of_the_same_time_are_told() -> None:
    frame = table(rows=600)
    assert not any("of the same time" in note for note in driftline.audit(frame, **QUICK).numbers["data"]["notes"])
    tied = driftline.audit(frame.assign(when=np.arange(600) // 150), **QUICK).numbers["data"]["notes"]
    assert any(note.startswith("4 of 5 cuts between periods fall among rows of the same time") for note in tied)


def test_an_infinite_prediction_is_refused() -> None:
    frame = table(rows=400).assign(y=np.random.default_rng(0).normal(size=400), said=np.r_[np.inf, np.zeros(399)])
    with pytest.raises(UserError, match="'said' has 1 missing or infinite values"):
        driftline.audit(frame, **QUICK, prediction="said")


def test_a_log_with_late_labels_raises_its_alarms_late() -> None:
    pytest.importorskip("river")
    frame = table("concept", rows=1200)
    frame["said"] = np.where((frame["b"] > 0) == (frame["a"] < 1), "yes", "no")
    at_once, late = (
        driftline.audit(frame, time="when", target="y", prediction="said", period="200 rows", delay=delay)
        for delay in (0, 2)
    )
    names = at_once.numbers["data"]["periods"]
    fired = at_once.numbers["log_alarms"]["adwin"]
    assert fired
    assert late.numbers["log_alarms"]["adwin"] == [names[names.index(n) + 2] for n in fired if n in names[:-2]]


def test_texts_that_change_their_words_but_not_their_length_have_changed() -> None:
    random = np.random.default_rng(0)
    words = [f"w{k}rd" for k in range(10, 60)]

    def said(pool: list[str]) -> str:
        return " ".join(random.choice(pool, 6))

    same = [said(words) for _ in range(600)]
    other = [said(words[:25] if k < 300 else words[25:]) for k in range(600)]
    found = driftline.audit(table(rows=600).assign(same=same, other=other), **QUICK)
    changed = {row["feature"]: row["changed"] for row in found.numbers["shift"]["features"]}
    assert changed["other"]
    assert not changed["same"]


def test_every_number_has_its_interval_and_n() -> None:
    found = driftline.audit(table("concept", rows=800), **QUICK)
    matrix = found.numbers["decay"]["matrix"]
    for key, low, high in (("accuracy", "low", "high"), ("ttr", "ttr_low", "ttr_high")):
        value, least, most = (np.array(matrix[name], float) for name in (key, low, high))
        known = np.isfinite(value)
        assert (np.isfinite(least) == known).all()
        assert (least <= most)[known].all()
        assert (np.array(matrix["n"])[known] > 0).all()
    for row in found.numbers["policies"]:
        course = pd.DataFrame({key: row[f"by_period{key}"] for key in ("", "_low", "_high", "_n")})
        assert (course["_low"] <= course[""]).all()
        assert (course[""] <= course["_high"]).all()
        assert (course["_n"] == 100).all()


def test_harm_prevented_is_what_the_replay_gained() -> None:
    pytest.importorskip("river")
    found = driftline.audit(table("concept", rows=1200), **{**QUICK, "period": "200 rows"})
    rows = {row["policy"]: row for row in found.numbers["policies"]}
    assert found.numbers["detectors"]
    for judged in found.numbers["detectors"]:
        gained = rows[f"on-{judged['detector']}"]["gained"]
        assert judged["harm_prevented"] == pytest.approx(gained["value"])
        assert gained["low"] == judged["harm_prevented_low"] <= judged["harm_prevented"]
        assert judged["harm_prevented"] <= judged["harm_prevented_high"]
        assert judged["found"] == 0 or judged["delay"] >= 0


def test_a_short_table_is_cut_by_itself_into_periods_that_are_long_enough() -> None:
    frame = table(rows=100)
    found = driftline.audit(frame, time="when", target="y", model="logistic")
    assert min(found.numbers["data"]["rows_per_period"]) >= 10
    assert sum(found.numbers["data"]["rows_per_period"]) == 100


def test_a_column_that_says_when_is_named_with_the_way_to_leave_it_out() -> None:
    frame = table(rows=600)
    frame = frame.assign(number=range(600), name=[f"row {k}" for k in range(600)])
    found = driftline.audit(frame, **QUICK)
    assert found.numbers["data"]["says_when"] == ["number", "name"]
    others = ",".join(name for name in found.numbers["data"]["features"] if name not in ("number", "name"))
    assert f'--features "{others}"' in found.answers[2].text
    again = driftline.audit(frame, **QUICK, features=others.split(","))
    assert again.numbers["data"]["says_when"] == []
    assert "--features" not in again.answers[2].text


def test_pieces_run_in_this_process_where_forking_is_unsafe(monkeypatch: pytest.MonkeyPatch) -> None:
    pieces = {"a": os.getpid, "b": os.getpid}
    assert os.getpid() not in carry_out(pieces, 2).values()
    monkeypatch.setattr("sys.platform", "darwin")
    assert set(carry_out(pieces, 2).values()) == {os.getpid()}
