"""Tables on which some numbers cannot be known: the others are given, and the missing ones are named."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import driftline
from driftline.auditing.checks import check_table
from driftline.auditing.examples import table
from driftline.auditing.feature_shift import feature_shifts
from driftline.auditing.frame import read_frame
from driftline.auditing.table import Limits, prepare
from driftline.errors import UserError

QUICK: dict[str, Any] = {
    "time": "when",
    "target": "y",
    "period": "100 rows",
    "model": "logistic-regression",
    "quick": True,
}


@pytest.mark.filterwarnings("ignore:The number of unique classes")
def test_a_target_that_nobody_can_answer_leaves_ratios_unknown() -> None:
    frame = table(rows=200).assign(y=[f"c{k}" for k in range(200)])
    found = driftline.audit(frame, **{**QUICK, "period": "50 rows"})
    assert found.gate_values["tas"] is None
    assert "Not known: new models have too little skill" in found.answers[1].text
    assert any("like an identifier" in warning for warning in found.data.warnings)
    assert "Audit of" in found.html()


@pytest.mark.filterwarnings("error:Mean of empty slice")
@pytest.mark.parametrize(("first", "last", "log"), [(0, 300, True), (100, 500, False)])
def test_constant_numbers_for_a_long_time(first: int, last: int, log: bool) -> None:
    y = np.random.default_rng(0).normal(size=600)
    y[first:last] = 0.0
    more: dict[str, Any] = {"predictions": "logged", "model": None} if log else {}
    found = driftline.audit(table(rows=600).assign(y=y, logged=0.5), **{**QUICK, **more})
    json.dumps(found.to_dict(), allow_nan=False)
    assert "Audit of" in found.html()


def test_one_time_for_all_rows_is_refused() -> None:
    with pytest.raises(UserError, match=r"every row has the same time, 2020-01-01"):
        driftline.audit(table(rows=400).assign(when="2020-01-01"), **{**QUICK, "period": "auto"})


def test_boundaries_among_rows_of_the_same_time_are_reported() -> None:
    frame = table(rows=400).assign(logged="yes")[["when", "y", "logged"]]
    plain, tied = (
        driftline.audit(rows, time="when", target="y", predictions="logged", period="100 rows").data.notes
        for rows in (frame, frame.assign(when=np.arange(400) // 150))
    )
    assert not any("of the same time" in note for note in plain)
    assert any(note.startswith("2 of 3 boundaries between periods fall among rows of the same time") for note in tied)


def test_an_infinite_prediction_is_refused() -> None:
    frame = table(rows=400).assign(y=np.random.default_rng(0).normal(size=400), logged=np.r_[np.inf, np.zeros(399)])
    with pytest.raises(UserError, match="'logged' has 1 missing or infinite values"):
        driftline.audit(frame, **{**QUICK, "model": None}, predictions="logged")


def test_a_log_with_late_labels_raises_its_alarms_late() -> None:
    pytest.importorskip("river")
    frame = table("concept", rows=1200)
    frame["logged"] = np.where((frame["b"] > 0) == (frame["a"] < 1), "yes", "no")
    at_once, late = (
        driftline.audit(frame, time="when", target="y", predictions="logged", period="200 rows", delay=delay)
        for delay in (0, 2)
    )
    names, fired = at_once.data.periods, at_once.log_alarms["adwin"]
    assert fired
    assert late.log_alarms["adwin"] == tuple(names[names.index(n) + 2] for n in fired if n in names[:-2])


def test_texts_that_change_their_words_but_not_their_length_have_changed() -> None:
    random = np.random.default_rng(0)
    words = [f"w{k}rd" for k in range(10, 60)]

    def draw_label(pool: list[str]) -> str:
        return " ".join(random.choice(pool, 6))

    same = [draw_label(words) for _ in range(400)]
    other = [draw_label(words[:25] if k < 200 else words[25:]) for k in range(400)]
    frame = read_frame(table(rows=400).assign(same=same, other=other), time="when", target="y")
    shifts = feature_shifts(prepare(frame, QUICK["model"], QUICK["period"], 0, 0, Limits(), None))
    changed = {row.feature: row.changed for row in shifts}
    assert changed["other"]
    assert not changed["same"]


def test_a_short_table_is_cut_by_itself_into_periods_that_are_long_enough() -> None:
    frame = table(rows=100)
    found = driftline.audit(frame, time="when", target="y", model="logistic-regression", period="auto")
    assert min(found.data.rows_per_period) >= 10
    assert sum(found.data.rows_per_period) == 100


def test_a_column_that_identifies_the_row_is_named_with_the_way_to_exclude_it() -> None:
    frame = table(rows=400)
    frame = frame.assign(number=range(400), name=[f"row {k}" for k in range(400)], logged="yes")
    frame = frame[["when", "a", "b", "number", "name", "logged", "y"]]
    found = driftline.audit(frame, time="when", target="y", predictions="logged", period="100 rows")
    assert found.data.time_proxies == ("number", "name")
    others = ",".join(name for name in found.data.features if name not in ("number", "name"))
    assert f'--features "{others}"' in found.answers[2].text
    again = read_frame(frame, time="when", target="y", features=others.split(","))
    assert again.time_proxies == ()
    assert not any("--features" in warning for warning in check_table(again))


@pytest.mark.parametrize("features", [np.array(["a", "b"]), table(rows=4).columns[[1, 2]]], ids=["array", "index"])
def test_features_are_any_sequence_of_names(features: Any) -> None:
    frame = table(rows=400).assign(logged="yes")
    found = driftline.audit(frame, time="when", target="y", predictions="logged", period="100 rows", features=features)
    assert found.data.features == ("a", "b")
    assert "features=['a', 'b']" in found.provenance.command


@pytest.mark.parametrize("limits", [{"rows": 1}, {"training_rows": 0}, {"probe_rows": 0}])
def test_limits_that_leave_no_row_are_refused(limits: dict[str, int]) -> None:
    with pytest.raises(UserError, match="rows must be 2 or greater"):
        driftline.audit(table(rows=40), **{**QUICK, **limits})
