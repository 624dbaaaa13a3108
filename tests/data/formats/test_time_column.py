"""Time columns: dates written as whole numbers are dates, doubtful ones are asked about, others stay numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from driftline.auditing.examples import table
from driftline.auditing.frame import read_frame
from driftline.auditing.table import Limits, prepare
from driftline.data.formats.time_column import parse_times
from driftline.errors import UserError

DAYS = pd.date_range("2023-01-30", periods=3, freq="D")
MONTHS = pd.date_range("2022-12-01", periods=3, freq="MS")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ([20230130, 20230131, 20230201], DAYS),
        ([20230130.0, 20230131.0, 20230201.0], DAYS),
        (["20230130", "20230131", "20230201"], DAYS),
        ([202212, 202301, 202302], MONTHS),
        (pd.period_range("2022-12", periods=3, freq="M"), MONTHS),
        (pd.period_range("2022-12", periods=3, freq="M").astype(object), MONTHS),
        (DAYS.tz_localize("UTC"), DAYS),
    ],
)
def test_dates_however_they_are_written(written: Any, meant: pd.DatetimeIndex) -> None:
    found, _ = parse_times(pd.Series(written, name="d"))
    assert found.dtype == "datetime64[us]"
    assert found.tolist() == meant.to_numpy("datetime64[us]").tolist()


def test_a_reading_of_whole_numbers_as_dates_is_reported_and_can_be_refused() -> None:
    column = pd.Series([202212, 202301], name="d")
    _, (note,) = parse_times(column)
    assert "'d' is read as dates written as yyyymm" in note
    assert parse_times(column, "number")[0].tolist() == [202212, 202301]


@pytest.mark.parametrize("numbers", [[1931, 2013], list(range(200000, 200200)), [20230131.5, 20230201.0]])
def test_other_numbers_stay_numbers(numbers: list[float]) -> None:
    found, notes = parse_times(pd.Series(numbers, name="d"))
    assert found.tolist() == numbers
    assert notes == []


def test_dates_with_a_mistake_are_asked_about() -> None:
    with pytest.raises(
        UserError, match=r"'d' looks like yyyymmdd, but 20230132 in row 3 is not such a date.*kind number"
    ):
        parse_times(pd.Series([20230130, 20230131, 20230132], name="d"))
    with pytest.raises(UserError, match="'d' should be dates, but 7 in row 1"):
        parse_times(pd.Series([7, 8], name="d"), "date")
    with pytest.raises(UserError, match="no kind of the time column 'd': 'category'"):
        parse_times(pd.Series([7, 8], name="d"), "category")


def test_an_audit_of_whole_number_dates_is_cut_by_the_calendar() -> None:
    frame = table(rows=600)
    when = pd.DatetimeIndex(frame["when"])
    whole = (when.year * 10000 + when.month * 100 + when.day).to_numpy(np.int64)
    frames = [read_frame(frame.assign(when=given), time="when", target="y") for given in (when.normalize(), whole)]
    one, other = (prepare(read, "logistic-regression", "auto", 0, 0, Limits(), None) for read in frames)
    assert one.period == other.period in ("each", "day", "week", "month")
    assert one.names == other.names
    assert [rows.id.tolist() for rows in one.periods] == [rows.id.tolist() for rows in other.periods]


@pytest.mark.parametrize("sentinel", [99991231, 0, -1, 20230131.5])
def test_dates_with_a_sentinel_are_asked_about(sentinel: float) -> None:
    days = pd.date_range("2021-01-01", periods=600, freq="D").strftime("%Y%m%d").astype(int)
    column = pd.Series([*days[:-1], sentinel], name="d")
    with pytest.raises(UserError, match=r"'d' looks like yyyymmdd, but .* in row 600 is not such a date.*kind number"):
        parse_times(column)
    assert parse_times(column, "number")[0][-1] == sentinel
