"""Kinds of columns: the same numbers in whatever type are the same numbers, for audits and for `--data table` alike."""

from __future__ import annotations

import datetime
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import driftline
from driftline.auditing import AuditResult
from driftline.auditing.frame import read_frame
from driftline.data.formats.column_kinds import n_earliest, prepare, to_floats
from driftline.data.table import table
from driftline.errors import UserError
from driftline.models.tabular import row_index_model
from driftline.seeds import Seed

ROWS = 600
NUMBERS = np.random.default_rng(0).integers(0, 86_400, ROWS)
STORED = {
    "float64": pa.array(NUMBERS.astype(float)),
    "decimal128": pa.array(NUMBERS).cast(pa.decimal128(20, 0)).cast(pa.decimal128(22, 2)),
    "date32": pa.array(NUMBERS.astype(np.int32)).cast(pa.date32()),
    "time64": pa.array(NUMBERS * 1_000_000).cast(pa.time64("us")),
    "duration": pa.array(NUMBERS).cast(pa.duration("s")),
    "text": pa.array([f"{n}.00" for n in NUMBERS]),
    "grouped text": pa.array([f" {n:,.2f}" for n in NUMBERS]),
    "ISO text": pa.array([str(np.datetime64(int(n), "D")) for n in NUMBERS]),
}


def stored(form: str, path: Path) -> Path:
    """A table whose target is a step function of one column, which is kept in this type."""
    y = np.where((NUMBERS // 10_800) % 2, "yes", "no")
    noise = np.random.default_rng(1).normal(size=ROWS)
    pq.write_table(pa.table({"t": np.arange(ROWS), "x": STORED[form], "noise": noise, "y": y}), path)
    return path


def audit(path: Path, **more: Any) -> AuditResult:
    options = {"time": "t", "target": "y", "period": "200 rows", "model": "logistic-regression", **more}
    return driftline.audit(path, **options)


def reached(path: Path) -> float:
    """The accuracy on the last third of a model of the first two, as an audit makes it."""
    frame = read_frame(path, time="t", target="y")
    model = row_index_model(
        frame.inputs, "hist-gradient-boosting", frame.task, frame.labels, Seed(0), raw_features=frame.raw_features
    )
    model.fit(frame.samples.x[:400], frame.samples.y[:400])
    answers = frame.task.decode(model.predict(frame.samples.x[400:]))
    return float(frame.task.correct(answers.prediction, frame.samples.y[400:]).mean())


def test_a_model_reaches_the_same_accuracy_in_every_type(tmp_path: Path) -> None:
    found = {form: reached(stored(form, tmp_path / "t.parquet")) for form in STORED}
    assert min(found.values()) == max(found.values()) > 0.95, found


@pytest.mark.parametrize("form", list(STORED))
def test_a_dataset_has_the_same_inputs_in_every_type(form: str, tmp_path: Path) -> None:
    x = table([], path=str(stored(form, tmp_path / "t.parquet")), time="t", target="y").samples.x
    scale = 86_400 if form in ("time64", "duration") else 1
    np.testing.assert_allclose(x[:, 0] * scale, NUMBERS, rtol=1e-6)
    assert x.shape == (ROWS, 2)


TYPED: dict[str, tuple[Any, str, int]] = {  # values, kind, and the unit in which they are NUMBERS
    **{form: (STORED[form].to_pylist(), "number", 1) for form in ("float64", "decimal128")},
    **{form: (STORED[form].to_pylist(), "number", 86_400) for form in ("time64", "duration")},
    "date32": (STORED["date32"].to_pylist(), "date", 1),
    "datetime": ([datetime.datetime(1970, 1, 1) + datetime.timedelta(int(n)) for n in NUMBERS], "date", 1),
    "period": ([pd.Period(np.datetime64(int(n), "D"), "D") for n in NUMBERS], "date", 1),
}


@pytest.mark.parametrize("form", list(TYPED))
def test_a_type_decides_also_where_the_earliest_values_are_missing(form: str) -> None:
    values, kind, unit = TYPED[form]
    frame = pd.DataFrame({"x": pd.Series([None] * 100 + values[100:], dtype=object)})
    made, (column,) = prepare(frame, early=slice(100))
    assert (column.kind, column.missing) == (kind, 100)
    np.testing.assert_allclose(to_floats(made["x"])[100:] * unit, NUMBERS[100:], rtol=1e-9)


def test_both_readers_agree_on_every_kind(tmp_path: Path) -> None:
    words = ["it was a long sentence number " + str(k) for k in range(ROWS)]
    columns = {"x": STORED["decimal128"], "shop": ["a", "b"] * 300, "post": ["01067", "99999"] * 300}
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"t": np.arange(ROWS), **columns, "says": words, "y": [0, 1, 1] * 200}), path)
    found = audit(path, columns={"says": "ignore"}).data.columns
    kinds = {column.name: (column.kind, column.missing, column.levels) for column in found}
    assert kinds == {
        "x": ("number", 0, len(set(NUMBERS))),
        "shop": ("category", 0, 2),
        "post": ("category", 0, 2),  # numbers do not begin with a zero
        "says": ("ignore", 0, ROWS),
    }
    data = table([], path=str(path), time="t", target="y", columns={"says": "ignore"})
    assert data.samples.x.shape[1] == 1 + 2 + 2
    again = table([], path=str(path), time="t", target="y", columns={"says": "ignore", "post": "number"})
    assert again.samples.x.shape[1] == 1 + 2 + 1


def test_a_category_that_hardly_repeats_is_reported(tmp_path: Path) -> None:
    frame = pd.DataFrame({"t": np.arange(ROWS), "key": [f"k{n}" for n in NUMBERS], "a": 1.0, "y": [0, 1, 1] * 200})
    found = driftline.audit(frame, time="t", target="y", period="200 rows", model="logistic-regression")
    (note,) = [note for note in found.data.notes if "levels in" in note]
    assert note.startswith(f"column 'key': {len(set(NUMBERS))} levels in 600 rows")
    html = found.html()
    assert "assumed kind" in html
    assert f"{len(set(NUMBERS))} levels in 600 rows" in html


def test_kinds_that_are_chosen() -> None:
    frame = pd.DataFrame({"code": [1, 2], "day": [20230131, 20230201], "mixed": ["7", "n/a"], "gone": [1, 2]})
    chosen = {"code": "category", "day": "date", "mixed": "number", "gone": "ignore"}
    made, columns = prepare(frame, chosen)
    assert list(made) == ["code", "day", "mixed"]
    assert made["code"].tolist() == ["1", "2"]
    assert made["day"].tolist() == [pd.Timestamp("2023-01-31"), pd.Timestamp("2023-02-01")]
    np.testing.assert_array_equal(made["mixed"], [7, np.nan])
    assert columns[2].note == "1 values cannot be read as number and count as missing"
    assert [column.kind for column in columns] == list(chosen.values())


def test_kinds_that_cannot_be(tmp_path: Path) -> None:
    frame = pd.DataFrame({"shop": ["a", "b"]})
    with pytest.raises(UserError, match="'shop' cannot be read as number: it holds 'a'"):
        prepare(frame, {"shop": "number"})
    with pytest.raises(UserError, match="no kind of column 'shop': 'numeric'"):
        prepare(frame, {"shop": "numeric"})
    with pytest.raises(UserError, match=r"no feature column 'shp'\. Did you mean 'shop'"):
        prepare(frame, {"shp": "number"})
    with pytest.raises(UserError, match=r"'y' is not a feature.*--task"):
        audit(stored("float64", tmp_path / "t.parquet"), columns={"y": "category"})


def test_the_future_does_not_decide_how_texts_are_read() -> None:
    texts = pd.DataFrame({"a": [str(k) for k in range(1, 201)]})
    later = texts.assign(a=texts["a"].where(texts.index < 100, "unknown"))
    (one, _), (other, (column,)) = prepare(texts, early=slice(100)), prepare(later, early=slice(100))
    assert other["a"][:100].tolist() == one["a"][:100].tolist()
    assert column.note == "100 values cannot be read as number and count as missing"


def test_a_decimal_target_is_a_number_and_so_are_its_logged_predictions(tmp_path: Path) -> None:
    y = pa.array(NUMBERS).cast(pa.decimal128(20, 0))
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"t": np.arange(ROWS), "x": NUMBERS, "y": y, "logged": y}), path)
    found = audit(path, predictions="logged", model=None)
    assert found.data.task == "number"
    assert found.gate_values["first_own"] == 0.0, "the RMSE"
    assert table([], path=str(path), time="t", target="y").samples.y[:3].tolist() == NUMBERS[:3].tolist()


def test_a_model_that_prepares_its_inputs_gets_the_rows_as_they_were_given() -> None:
    seen = []

    class Own:
        def fit(self, x: pd.DataFrame, y: Any) -> None:
            seen.append(x["day"].iloc[0])

        def predict(self, x: pd.DataFrame) -> np.ndarray:
            return np.full(len(x), 1)

    days = [datetime.date(2020, 1, 1)] * ROWS
    frame = pd.DataFrame({"t": np.arange(ROWS), "day": days, "y": [0, 1, 1] * 200})
    driftline.audit(frame, time="t", target="y", period="200 rows", model=Own())
    assert seen[0] == datetime.date(2020, 1, 1)


def test_an_index_counts_as_a_column(tmp_path: Path) -> None:
    when = pd.date_range("2020-01-01", periods=ROWS, freq="h")
    frame = pd.DataFrame({"a": NUMBERS, "y": np.where(NUMBERS > 40_000, "yes", "no")}, index=when)
    frame.to_parquet(tmp_path / "t.parquet")
    named, periods = frame.rename_axis("when"), frame.set_axis(when.to_period("h"))
    levels = named.set_index(pd.MultiIndex.from_arrays([when, NUMBERS], names=["when", "n"]))
    expected = read_frame(frame.reset_index(names="when"), time="when", target="y")
    for given, time in ((frame, "index"), (named, "when"), (periods, "index"), (levels, "when")):
        found = read_frame(given, time=time, target="y")
        assert found.fingerprint == expected.fingerprint
        assert found.features == ("a",)
    assert read_frame(tmp_path / "t.parquet", time="index", target="y").fingerprint == expected.fingerprint
    data = table([], path=str(tmp_path / "t.parquet"), time="index", target="y")
    assert data.samples.time.tolist() == when.to_numpy("datetime64[us]").tolist()  # type: ignore[union-attr]
    with pytest.raises(UserError, match="Known: a, index, y"):
        read_frame(frame, time="date", target="y")


def test_periods_in_a_parquet_file_are_times_in_a_new_process(tmp_path: Path) -> None:
    """Writing such a file lets Arrow read periods, so that another process must read it."""
    days = pd.period_range("2020-01-01", periods=4, freq="D")
    pd.DataFrame({"day": days, "y": [0, 1, 0, 1]}).to_parquet(tmp_path / "t.parquet")
    code = "from driftline.data.formats.table_file import read_file; import sys, pathlib; "
    code += "print(read_file(pathlib.Path(sys.argv[1]))['day'].astype(str).tolist())"
    read = subprocess.run([sys.executable, "-c", code, tmp_path / "t.parquet"], capture_output=True, text=True)
    assert read.stdout == "['2020-01-01', '2020-01-02', '2020-01-03', '2020-01-04']\n", read.stderr


def test_levels_of_column_names_get_a_sentence() -> None:
    frame = pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("a", "x"), ("a", "y")]))
    with pytest.raises(UserError, match=r"2 levels of column names; join them first"):
        driftline.audit(frame, time="t", target="y")


def test_times_of_day_before_ten_are_numbers() -> None:
    made, (column,) = prepare(pd.DataFrame({"x": ["08:30:12", "23:59", "00:00", "7:15"]}))
    assert column.kind == "number"
    np.testing.assert_allclose(made["x"] * 86_400, [30_612, 86_340, 0, 26_100])


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (["00123", "99999"], "category"),
        (["00.5", "12.5"], "number"),
        (["-05", "12"], "number"),
        (["0,123", "1,234"], "category"),  # a decimal comma, not a thousand
    ],
)
def test_which_leading_zeros_make_a_code(texts: list[str], kind: str) -> None:
    assert prepare(pd.DataFrame({"x": texts}))[1][0].kind == kind


@pytest.mark.parametrize("word", ["NA", "-", " n/a", ""])
def test_words_for_a_missing_value_do_not_decide_the_kind(word: str) -> None:
    texts = [word if k % 8 == 0 else f"{k}.5" for k in range(400)]
    made, (column,) = prepare(pd.DataFrame({"x": texts}), early=slice(100))
    assert (column.kind, column.missing) == ("number", 50)
    assert made["x"][1] == 1.5
    made, (column,) = prepare(pd.DataFrame({"sign": ["+", "-"] * 200}))
    assert (column.kind, column.levels, column.missing) == ("category", 2, 0)


def test_mixed_values_are_read_unless_they_are_no_single_values() -> None:
    mixed = pd.DataFrame({"x": pd.Series([Decimal("1.5"), 2.5, None, Decimal("4")], dtype=object)})
    for chosen in ({}, {"x": "number"}):
        made, (column,) = prepare(mixed, chosen)
        np.testing.assert_array_equal(made["x"], [1.5, 2.5, np.nan, 4])
        assert (column.kind, column.missing, column.note) == ("number", 1, "")
    some = pd.DataFrame({"x": pd.Series([Decimal("1.5"), 2.5, "unknown"], dtype=object)})
    made, (column,) = prepare(some, {"x": "number"})
    np.testing.assert_array_equal(made["x"], [1.5, 2.5, np.nan])
    assert column.note == "1 values cannot be read as number and count as missing"
    for value in ([1], b"raw", {"a": 1}):
        with pytest.raises(UserError, match="'x' holds mixed values, which no model can use; leave it out"):
            prepare(pd.DataFrame({"x": pd.Series([1.5, value], dtype=object)}), {"x": "number"})


def test_texts_that_begin_like_no_number_are_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pd, "to_numeric", lambda *_, **__: pytest.fail("numbers were tried"))
    monkeypatch.setattr(pd, "to_datetime", lambda *_, **__: pytest.fail("dates were tried"))
    texts = ["red", "x1"] * 40 + ["7"]
    assert prepare(pd.DataFrame({"x": texts}))[1][0].kind == "category"


def test_times_of_day_are_built_only_from_texts_that_are_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pd, "to_timedelta", lambda *_, **__: pytest.fail("times of day were built"))
    assert prepare(pd.DataFrame({"x": ["1st", "2nd"] * 40}))[1][0].kind == "category"


def test_one_tenth_with_a_minimum() -> None:
    assert [n_earliest(rows) for rows in (1, 10, 11, 2000)] == [1, 1, 2, 200]
    assert [n_earliest(rows, 100) for rows in (1, 2000)] == [100, 200]
