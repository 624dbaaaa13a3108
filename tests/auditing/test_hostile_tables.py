"""Tables that an audit cannot use, or uses with a warning: each gets one clear sentence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from driftline.auditing.checks import check_table
from driftline.auditing.examples import table
from driftline.auditing.frame import Frame, read_frame
from driftline.auditing.table import Limits, prepare
from driftline.data.formats.dialect import Dialect
from driftline.errors import UserError

ROWS = 120
PLAIN = table(rows=ROWS).assign(when=pd.date_range("2024-01-01", periods=ROWS, freq="h"))


def read(frame: object) -> Frame:
    return read_frame(frame, time="when", target="y")


def zoned(k: int, zones: tuple[str | None, ...]) -> object:
    """Return the time of row k, in one of several zones."""
    return PLAIN["when"][k].tz_localize(zones[k % len(zones)])


@pytest.mark.filterwarnings("ignore:Parsing integer or float values")
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda t: t[:0], "the frame has 0 rows with a 'y', and an audit needs at least 40"),
        (lambda t: pd.DataFrame(), "no column of the frame 'when'. Known: none"),
        (lambda t: t.assign(y=np.nan), "the frame has 0 rows with a 'y', and an audit needs at least 40"),
        (lambda t: t.assign(y="yes"), "target column 'y' has only one value, yes; there is nothing to predict"),
        (lambda t: t.set_axis(["when", "a", "a", "y"], axis=1), "the frame has two columns called 'a'; rename one"),
        (lambda t: t.assign(when=t["when"].where(t["a"] < 1)), "missing values; drop those rows"),
        (lambda t: t.assign(when=[10**25 + k for k in range(ROWS)]), "numbers as large as 1e+25, which are not exact"),
        (lambda t: t.assign(y=1e300 * t["a"]), "whose squares overflow; use another unit"),
        (lambda t: t.assign(y=np.r_[np.inf, t["a"][1:]]), "target column 'y' has 1 missing or infinite values"),
        (lambda t: t.assign(a=[[1]] * ROWS), "column 'a' holds mixed values, which no model can use; leave it out"),
    ],
    ids=["empty", "no columns", "no label", "one class", "twins", "gaps", "times", "large", "infinite", "lists"],
)
def test_a_table_that_cannot_be_used_is_refused(change: Callable[[pd.DataFrame], pd.DataFrame], sentence: str) -> None:
    with pytest.raises(UserError) as error:
        read(change(PLAIN[["when", "a", "b", "y"]]))
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)


def test_one_period_is_refused() -> None:
    with pytest.raises(UserError, match="every row has the same time, 2024-01-01"):
        prepare(read(PLAIN.assign(when="2024-01-01")), "logistic-regression", "auto", 0, 0, Limits())


def test_columns_that_cannot_help_are_named() -> None:
    odd = PLAIN.assign(one=1.0, empty=np.nan, large=[10**25 + k for k in range(ROWS)])
    warnings = check_table(read(odd))
    assert "'one' is constant and cannot help a model" in warnings
    assert "'empty' is empty and cannot help a model" in warnings
    assert "'large' is equal in the first 15 digits and cannot help a model" in warnings


def test_a_category_that_hardly_repeats_is_named() -> None:
    frame = read(PLAIN.assign(name=[f"person {k}" for k in range(ROWS)]))
    assert any("'name' identifies the time or the row" in warning for warning in check_table(frame))
    assert any(f"'name': {ROWS} levels in {ROWS} rows" in note for note in frame.notes)


@pytest.mark.parametrize(
    ("zones", "sentence"),
    [
        (("UTC", "Asia/Tokyo"), "times in 'when' have several time zones and are compared in UTC"),
        (("UTC", None, None), "80 of 120 times in 'when' have no time zone and are read as UTC"),
        (("UTC",), None),
        ((None,), None),
    ],
)
def test_mixed_time_zones_are_named(zones: tuple[str | None, ...], sentence: str | None) -> None:
    times = [zoned(k, zones) for k in range(ROWS)]
    for column in (pd.Series(times, dtype=object), pd.Series([str(time) for time in times])):
        frame = read(PLAIN.assign(when=column))
        assert [note for note in frame.notes if "zone" in note] == ([] if sentence is None else [sentence])
        expected = pd.to_datetime([str(time) for time in times], utc=True, format="ISO8601").sort_values()
        assert frame.samples.time is not None
        np.testing.assert_array_equal(frame.samples.time, expected.tz_localize(None).to_numpy("datetime64[us]"))


def test_rows_out_of_order_are_sorted() -> None:
    mixed = PLAIN.sample(frac=1, random_state=0, ignore_index=True)
    first, second = read(PLAIN), read(mixed)
    for one in (first, second):
        assert one.samples.time is not None
        assert (np.diff(one.samples.time) >= np.timedelta64(0)).all()
    np.testing.assert_array_equal(first.samples.y, second.samples.y)
    np.testing.assert_array_equal(
        PLAIN["a"].to_numpy()[first.samples.x], mixed["a"].to_numpy()[second.samples.x], strict=True
    )


def test_a_file_that_is_not_utf8(tmp_path: Path) -> None:
    text = PLAIN.assign(town=["Zürich", "Genève"] * (ROWS // 2)).to_csv(index=False)
    path = tmp_path / "rows.csv"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(UserError, match="not UTF-8: give --encoding latin-1 in an audit"):
        read(path)
    given = read_frame(path, time="when", target="y", dialect=Dialect(encoding="latin-1"))
    assert set(given.table["town"]) == {"Zürich", "Genève"}
    path.write_bytes(b"\x00\xff\xfe\x80" * 500)
    with pytest.raises(UserError) as error:
        read(path)
    assert "rows.csv" in str(error.value)
    assert "\n" not in str(error.value)
