"""Known drift gets the right name; every way to give data and models works; every mistake gets a sentence."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.tree import DecisionTreeClassifier

import driftline
from driftline.auditing import AuditResult
from driftline.auditing.examples import table
from driftline.auditing.frame import read_frame
from driftline.errors import UserError

pytestmark = pytest.mark.xdist_group("audit")  # what all its tests use is made once

QUICK: dict[str, Any] = {
    "time": "when",
    "target": "y",
    "period": "month",
    "model": "logistic-regression",
    "quick": True,  # without detectors, which cost half of a small audit
}
WHOLE: dict[str, Any] = {**QUICK, "quick": False, "period": "200 rows"}


@pytest.fixture(scope="module")
def small() -> AuditResult:
    return driftline.audit(table("concept", rows=1200), **WHOLE)


@pytest.mark.parametrize("drift", ["none", "concept", "noise"])
def test_known_drift_gets_its_name(drift: Any) -> None:
    model = DecisionTreeClassifier(max_depth=4, random_state=0)
    found = driftline.audit(table(drift, rows=2400, seed=3), **{**WHOLE, "quick": drift != "concept", "model": model})
    verdict = found.verdict
    assert verdict is not None
    assert found.shift is not None
    assert found.policies is not None
    assert verdict.aged == (drift == "concept"), str(found)
    assert verdict.harder == (drift == "noise"), str(found)
    assert found.shift.changed_features == []
    if drift == "concept":
        assert verdict.shape is not None
        assert verdict.shape.kind == "abrupt"
        (date,) = verdict.dates
        assert abs(date.at - np.datetime64("2024-07-01")) < np.timedelta64(15, "D")
        assert found.aging is not None
        assert found.aging.cause_z is not None
        assert found.aging.cause_z > 3
        assert found.policies.recommendation.policy != "never"
        assert found.policies.recommended.behind.value <= 0.02
        assert "The relation between inputs and target changed" in str(found)
    else:
        assert found.policies.recommendation.policy in ("never", "recalibrate")
    if drift in ("none", "noise"):
        assert found.gate_values["tas"] > 0.97  # type: ignore[operator]


def test_rare_positives_whose_concept_is_replaced_are_found_without_a_flag() -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=(9600, 3))
    late = np.arange(9600) >= 4800
    logit = 6 * np.where(late, x[:, 1], x[:, 0]) - 13
    y = np.where(random.random(9600) < 1 / (1 + np.exp(-logit)), "fraud", "fine")
    assert 0.01 < (y == "fraud").mean() < 0.04
    frame = pd.DataFrame({"when": np.arange(9600), "a": x[:, 0], "b": x[:, 1], "c": x[:, 2], "y": y})
    found = driftline.audit(frame, time="when", target="y", model="logistic-regression", period="800 rows")
    assert found.metric.name == "auc"
    assert found.verdict is not None
    assert found.verdict.aged
    assert abs(int(found.verdict.dates[0].at) - 4800) < 800
    assert any("unbalanced" in warning for warning in found.data.warnings)


def test_a_file_in_two_processes_is_audited_as_a_frame_in_one(small: AuditResult, tmp_path: Path) -> None:
    table("concept", rows=1200).to_parquet(tmp_path / "t.parquet")
    again = driftline.audit(tmp_path / "t.parquet", **WHOLE, jobs=2)
    unlike = {"provenance": 0, "data": 0}
    assert {**again.to_dict(), **unlike} == {**small.to_dict(), **unlike}


def test_the_numbers_say_where_they_come_from(small: AuditResult) -> None:
    provenance = small.provenance
    assert provenance.driftline == driftline.__version__
    assert abs(datetime.now(UTC) - datetime.fromisoformat(provenance.date)) < timedelta(hours=1)
    options = "time='when', target='y', model='logistic-regression', period='200 rows'"
    assert provenance.command == f"driftline.audit(frame, {options})"
    other = table("concept", rows=1200).assign(a=0.0)
    assert provenance.fingerprint == read_frame(table("concept", rows=1200), time="when", target="y").fingerprint
    assert provenance.fingerprint != read_frame(other, time="when", target="y").fingerprint


def test_a_class_or_function_is_audited_as_what_it_makes() -> None:
    frame, options = table("concept", rows=300), {**QUICK, "period": "75 rows"}

    def make() -> DecisionTreeClassifier:
        return DecisionTreeClassifier()

    models = {"make": make, "DecisionTreeClassifier": DecisionTreeClassifier}
    results = {name: driftline.audit(frame, **{**options, "model": model}) for name, model in models.items()}
    assert results["make"].gate_values == results["DecisionTreeClassifier"].gate_values
    for name in models:
        assert f"model={name}, period" in results[name].provenance.command
        assert results[name].to_dict()["data"]["model"] == name


def test_the_answers_come_in_order_with_numbers(small: AuditResult) -> None:
    questions = [answer.question for answer in small.answers]
    assert [q.split()[0] for q in questions] == ["Did", "How", "What", "When", "Which", "How"]
    assert "TAS = " in small.answers[0].text
    assert "SH (below 90% of a new one)" in small.answers[1].text
    assert small.answers[3].text.startswith(small.headline)


def test_every_number_has_its_interval_and_n(small: AuditResult) -> None:
    assert small.matrix is not None
    assert small.policies is not None
    assert np.isfinite(small.matrix.score).all()
    assert (small.matrix.error > 0).all()
    assert small.matrix.score.shape == (len(small.matrix.n),) * 2
    for sizes in small.sizes:
        assert sizes.tas.low <= sizes.tas.value <= sizes.tas.high
    for row in small.policies.results:
        assert all(part.low <= part.value <= part.high for part in row.by_period)
        assert {part.n for part in row.by_period} == {200}


def test_harm_prevented_is_what_the_replay_gained(small: AuditResult) -> None:
    pytest.importorskip("river")
    assert small.policies is not None
    assert small.detectors
    for result in small.detectors:
        assert result.harm_prevented == small.policies[f"on-{result.detector}"].gained
        assert result.found == 0 or result.delay >= 0
        assert result.found + result.missed == result.changes <= 1


def test_the_report_opens_and_escapes(tmp_path: Path) -> None:
    frame = table("covariate", rows=600).rename(columns={"a": "<script>alert(1)</script>", "color": "a&b"})
    found = driftline.audit(frame, **{**QUICK, "period": "100 rows"})
    assert found.shift is not None
    assert [row.feature for row in found.shift.changed_features] == ["<script>alert(1)</script>"]
    found.write(tmp_path / "audit.html", tmp_path / "audit.json")
    html = (tmp_path / "audit.html").read_text()
    assert "<script>alert(1)" not in html
    assert "&lt;script&gt;alert(1)" in html
    for answer in found.answers:
        assert answer.question in html
    assert "http" not in html.split("<body>")[1].split("<script")[0]
    assert json.loads((tmp_path / "audit.json").read_text()) == found.to_dict()


@pytest.mark.parametrize("form", ["csv", "csv.gz", "parquet", "arrow", "polars"])
def test_every_form_of_a_table_is_read_the_same(form: str, tmp_path: Path) -> None:
    frame = table("concept", rows=400)
    path = tmp_path / f"t.{form}"
    given: Any = path
    if form == "parquet":
        frame.to_parquet(path)
    elif form == "arrow":
        given = pa.Table.from_pandas(frame)
    elif form == "polars":
        given = pytest.importorskip("polars").from_pandas(frame)
    else:
        frame.to_csv(path, index=False)
    found, expected = (read_frame(source, time="when", target="y") for source in (given, frame))
    pd.testing.assert_frame_equal(found.inputs, expected.inputs, check_dtype=False)
    np.testing.assert_array_equal(found.samples.y, expected.samples.y)
    np.testing.assert_array_equal(found.samples.time, expected.samples.time)
    assert [column.kind for column in found.columns] == [column.kind for column in expected.columns]


class Majority:
    """No scikit-learn, no classes_, no probabilities: fit and predict, in the table's own labels."""

    def fit(self, x: pd.DataFrame, y: np.ndarray) -> Majority:
        assert list(x.columns) == ["a", "b", "color"]
        values, counts = np.unique(y, return_counts=True)
        self.answer = values[counts.argmax()]
        return self

    def predict(self, x: pd.DataFrame) -> np.ndarray:
        return np.full(len(x), self.answer)


def test_any_object_with_fit_and_predict() -> None:
    found = driftline.audit(table(rows=600), **{**QUICK, "model": Majority(), "period": "100 rows"})
    assert 0.4 < found.gate_values["never"] < 0.6  # type: ignore[operator]


def test_gaps_texts_dates_and_numbers_to_predict() -> None:
    frame = table("none", rows=400)
    random = np.random.default_rng(0)
    frame["born"] = pd.Timestamp("1990-01-01") + pd.to_timedelta(random.integers(0, 9000, 400), unit="D")
    frame["says"] = ["it was " + " ".join(random.choice(list("abcdefgh"), 5)) + " then" for _ in range(400)]
    frame.loc[::7, ["a", "color", "born", "says"]] = None
    frame.loc[3, "b"] = np.inf
    frame["y"] = frame["b"].where(np.isfinite(frame["b"]), 0) + 0.1 * random.normal(size=400)
    frame.loc[5, "y"] = np.nan
    for model in ("hist-gradient-boosting", "logistic-regression"):
        found = driftline.audit(frame, **{**QUICK, "model": model, "period": "100 rows"})
        assert found.data.task == "number"
        assert found.policies is not None
        assert found.metric.name == "rmse"
        assert found.policies.results[0].error < 0.5, "the mean absolute error, in units of the target"
        assert found.gate_values["never"] < 0.7  # type: ignore[operator]
    assert "1 rows have no 'y' yet" in found.data.notes[0]


def test_a_log_of_predictions() -> None:
    frame = table("concept", rows=1200)
    frame["logged"] = np.where((frame["b"] > 0) == (frame["a"] < 1), "yes", "no")
    found = driftline.audit(frame, time="when", target="y", predictions="logged", period="200 rows")
    assert found.gate_values["first_own"] > 0.9  # type: ignore[operator]
    assert found.gate_values["first_later"] < 0.5  # type: ignore[operator]
    assert "tas" not in found.gate_values
    assert "no model to retrain" in found.answers[3].text
    assert "Without new models to compare with" in found.answers[0].text
    assert found.log is not None
    assert found.log.worse
    assert found.headline == "The logged predictions got worse"
    assert "<title>Audit of the frame</title>" in found.html()
    alone = driftline.audit(
        frame[["when", "y", "logged"]], time="when", target="y", predictions="logged", period="200 rows"
    )
    assert "There are no feature columns" in alone.answers[2].text


def test_late_labels_are_waited_for() -> None:
    found = driftline.audit(table("concept", rows=800), **{**QUICK, "period": "100 rows"}, delay=2)
    assert found.policies is not None
    assert len(found.policies.best.by_period) == 8 - 4, "a model of two periods, whose labels are two periods late"
    assert {row.retrained_before[0] for row in found.policies.results} == {"rows 401-500"}


def test_a_long_period_is_subsampled_and_reported() -> None:
    limits = {"rows": 100, "training_rows": 150, "probe_rows": 50}
    found = driftline.audit(table(rows=1200), **{**QUICK, "period": "300 rows"}, **limits)
    assert found.data.rows_per_period == (100,) * 4
    assert "400 of 1,200 rows are used" in found.data.notes[0]
    assert found.policies is not None
    assert found.policies["never"].rows == 100


BAD: list[tuple[dict[str, Any], str]] = [
    ({"time": "wen"}, "no column of the frame 'wen'. Did you mean 'when'"),
    ({"target": "yy"}, "no column of the frame 'yy'"),
    ({"features": ["a", "c"]}, "no column of the frame 'c'"),
    ({"features": ["a", "y"]}, "without the target 'y'"),
    ({"features": []}, "one or more different columns"),
    ({"target": "when"}, "must be different columns"),
    ({"period": "fortnight"}, "no period 'fortnight'"),
    ({"period": "390 rows"}, "choose a finer period|leaves 1 period"),
    ({"model": "random-forst"}, "Did you mean 'random-forest'"),
    ({"model": 3}, "needs fit and predict, and int has no fit"),
    ({"model": dict}, "model 'dict' cannot be made"),
    ({"metric": max}, "metric 'max' is not a function of the truth and the prediction"),
    ({"model": "no.such.module:thing"}, "cannot import"),
    ({"predictions": "a", "model": None}, "predicted class, not a score"),
    ({"predictions": "nothing", "model": None}, "no column of the frame 'nothing'"),
    ({"task": "classification"}, "no task 'classification'"),
    ({"task": "number"}, "holds texts, not numbers"),
    ({"delay": -1}, "delay must be 0 or greater"),
    ({"time": "color"}, "time column 'color' has"),
    ({"train_until": "2020-01-01"}, "needs at least one training period"),
    ({"train_until": "spring"}, "is not a value of the time column"),
    ({"deployed": 12}, "needs at least 13"),
    ({"cost_error": -1.0}, "costs must be 0 or greater"),
    ({"metric": "rmse"}, "metric 'rmse' is for numbers"),
    ({"predictions": "y"}, "not both"),
    ({"perriod": "month"}, "no argument of audit 'perriod'. Did you mean 'period'"),
    ({"columns": ["color"]}, "--column takes NAME=KIND"),
]


@pytest.mark.parametrize(("wrong", "sentence"), BAD)
def test_mistakes_get_a_sentence(wrong: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        driftline.audit(table(rows=400), **{**QUICK, **wrong})


def test_unusable_tables_get_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no file"):
        driftline.audit(tmp_path / "none.csv", **QUICK)
    with pytest.raises(UserError, match="frame of pandas or polars"):
        driftline.audit([1, 2], **QUICK)
    with pytest.raises(UserError, match="at least 40"):
        driftline.audit(table(rows=20), **QUICK)
    with pytest.raises(UserError, match="two columns called 'a'"):
        driftline.audit(table(rows=400).rename(columns={"b": "a"}), **QUICK)


class Broken(Majority):
    def predict(self, x: pd.DataFrame) -> np.ndarray:
        raise RuntimeError("no luck")


def test_a_model_that_fails_is_named() -> None:
    with pytest.raises(UserError, match=r"the model Broken failed in predict on \d+ rows: no luck"):
        driftline.audit(table(rows=400), **{**QUICK, "model": Broken(), "period": "100 rows"})


def _numbers_table(y: np.ndarray) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    when = pd.date_range("2020-01-01", periods=len(y), freq="h")
    return pd.DataFrame({"when": when, "x": rng.normal(size=len(y)), "y": y})


def test_pure_noise_is_not_called_aging() -> None:
    y = np.random.default_rng(0).normal(size=800)
    found = driftline.audit(_numbers_table(y), **{**QUICK, "period": "100 rows"}, task="number")
    assert found.verdict is not None
    assert not found.verdict.has_skill
    assert "aging cannot be measured" in found.answers[0].text
    assert found.summary.word == "Inspect"


def test_several_metrics_and_the_first_decides() -> None:
    found = driftline.audit(table(rows=400), **{**QUICK, "period": "100 rows"}, metric=["log-loss", "auc"])
    assert [sizes.metric.name for sizes in found.sizes] == ["log-loss", "auc"]
    assert found.metric.name == "log-loss"
    assert found.policies is not None
    assert 0.5 < found.policies["never"].other_metrics["auc"] <= 1
    assert found.data.metric_reason == "chosen"
    json.dumps(found.to_dict(), allow_nan=False)


def test_counts_are_numbers_and_codes_are_classes() -> None:
    from driftline.data.table import parse_target
    from driftline.tasks import Classification, Regression

    counts = pd.Series(np.random.default_rng(0).poisson(300, size=2000))
    assert isinstance(parse_target(counts, "auto")[1], Regression)
    assert isinstance(parse_target(counts % 7, "auto")[1], Classification)


def test_a_logged_class_that_never_occurred_is_wrong() -> None:
    frame = table("none", rows=400)
    guess = frame["y"].astype(str).to_numpy(object)
    guess[::10] = "martian"
    found = driftline.audit(frame.assign(guess=guess), time="when", target="y", predictions="guess", period="100 rows")
    assert found.log is not None
    assert found.log.first_own.value == pytest.approx(0.9)


def test_missing_months_are_not_counted_as_months() -> None:
    frame = table("none", rows=2400)
    month = pd.DatetimeIndex(frame["when"]).month
    gap = frame[(month < 4) | (month > 7)]
    if pd.DatetimeIndex(gap["when"]).month.nunique() < 4:
        gap = frame.iloc[np.r_[0:800, 1800:2400]]
    found = driftline.audit(gap, **{**QUICK, "period": "day" if len(set(month)) < 4 else "month"})
    assert found.data.unit == "periods"
    assert "some are missing" in found.answers[1].text
