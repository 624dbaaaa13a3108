"""Separators, encodings, decimal signs and times: recognized, or asked for by a sentence that names the option."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from driftline.auditing.frame import read_frame
from driftline.data.formats.dialect import Dialect, recognize
from driftline.data.formats.time_column import parse_times
from driftline.data.table import table
from driftline.errors import UserError

PLAIN = "t,price,zip,town,y\n" + "".join(
    f"2020-01-{k:02d},{k}.5,0{k:04d},{'Köln' if k % 3 else 'Ulm'},{k % 2}\n" for k in range(1, 29)
)
PLAIN += PLAIN.partition("\n")[2].replace("2020-01", "2020-02")
GERMAN = PLAIN.replace(",", ";").replace(".5;", ",5;")


def both(path: Path, **options: Any) -> tuple[pd.DataFrame, np.ndarray]:
    """The inputs of an audit, after a check that `--data table` reads the same numbers and times."""
    dialect = {name: options[name] for name in ("sep", "encoding", "decimal") if name in options}
    more = {name: value for name, value in options.items() if name not in dialect}
    read = read_frame(path, time="t", target="y", dialect=Dialect(**dialect), **more)
    data = table([], path=str(path), time="t", target="y", features=["price"], **options)
    assert data.samples.x[:, 0].tolist() == read.inputs["price"].iloc[read.samples.x].tolist()
    assert data.samples.time is not None
    assert read.samples.time is not None
    np.testing.assert_array_equal(data.samples.time, read.samples.time)
    return read.inputs, read.samples.time


WRITTEN: dict[str, tuple[bytes, dict[str, Any]]] = {
    "semicolons and decimal commas": (GERMAN.encode(), {}),
    "tabs and decimal commas": (GERMAN.replace(";", "\t").encode(), {}),
    "bars": (PLAIN.replace(",", "|").encode(), {}),
    "UTF-16 with a mark": (PLAIN.encode("utf-16"), {}),
    "UTF-8 with a mark": (PLAIN.encode("utf-8-sig"), {}),
    "Latin-1": (GERMAN.encode("latin-1"), {"encoding": "latin-1"}),
    "UTF-16 without a mark": (PLAIN.encode("utf-16-le"), {"encoding": "utf-16-le"}),
    "all of it given": (GERMAN.encode(), {"sep": "semicolon", "encoding": "utf-8", "decimal": ","}),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_every_dialect_gives_the_same_table(name: str, tmp_path: Path) -> None:
    raw, options = WRITTEN[name]
    (tmp_path / "t.csv").write_bytes(raw)
    (tmp_path / "plain.csv").write_text(PLAIN, encoding="utf-8")
    (inputs, times), (expected, when) = both(tmp_path / "t.csv", **options), both(tmp_path / "plain.csv")
    pd.testing.assert_frame_equal(inputs, expected, check_dtype=False)
    np.testing.assert_array_equal(times, when)
    assert inputs["zip"].iloc[0] == "00001", "a code keeps its zeros"
    assert inputs["town"].iloc[0] == "Köln"


def test_a_gzipped_file_of_any_dialect(tmp_path: Path) -> None:
    (tmp_path / "t.tsv.gz").write_bytes(gzip.compress(GERMAN.replace(";", "\t").encode()))
    assert both(tmp_path / "t.tsv.gz")[0]["price"].iloc[0] == 1.5


@pytest.mark.parametrize(
    ("raw", "option"),
    [
        (GERMAN.encode("latin-1"), "--encoding latin-1"),
        (PLAIN.encode("utf-16-be"), "--encoding utf-16-be"),
        (GERMAN.replace(",5", ",500").encode(), "--decimal"),
        (GERMAN.replace("1,5;", "1.5;", 1).encode(), "--decimal"),
        (b"a|b,c|d\n1|2,3|4\n", "--sep comma"),
    ],
)
def test_what_cannot_be_told_is_asked_for(raw: bytes, option: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(raw)
    with pytest.raises(UserError, match=rf"t\.csv: expected a CSV file, but found: .*{option}"):
        read_frame(tmp_path / "t.csv", time="t", target="y")


def test_grouped_numbers_stay_whole_where_commas_separate() -> None:
    assert recognize(b'a,b\n"1,234",x\n', Dialect()).decimal == "."
    assert recognize(b'a,b\n"1,5",x\n', Dialect()).decimal == ","
    assert recognize(b"a;b\n1,234.5;1,234\n", Dialect()).decimal == "."


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"sep": ";;"}, "sep ';;': give one character"),
        ({"encoding": "latin-99"}, "encoding 'latin-99' is not known"),
        ({"decimal": "-"}, "decimal '-': give"),
    ],
)
def test_impossible_dialects_are_refused(wrong: dict[str, str], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        Dialect(**wrong)


def test_a_dialect_is_for_csv_files_only(tmp_path: Path) -> None:
    frame = pd.DataFrame({"t": range(50), "y": [0, 1] * 25, "price": 1.0})
    frame.to_parquet(tmp_path / "t.parquet")
    for source in (frame, tmp_path / "t.parquet"):
        with pytest.raises(UserError, match="leave them out"):
            read_frame(source, time="t", target="y", dialect=Dialect(sep=";"))


SECONDS = pd.Series([1_577_836_800, 1_577_923_200, 1_580_000_000], name="t")


@pytest.mark.parametrize(("unit", "scale"), [("unix", 1), ("unix-ms", 10**3), ("unix-us", 10**6), ("unix-ns", 10**9)])
def test_unix_times_are_recognized(unit: str, scale: int) -> None:
    expected = pd.to_datetime(SECONDS, unit="s").to_numpy("datetime64[us]")
    times, notes = parse_times(SECONDS * scale)
    np.testing.assert_array_equal(times, expected)
    assert "is read as Unix" in notes[0]
    assert parse_times((SECONDS * scale).astype(str))[0].tolist() == expected.tolist()
    assert parse_times(SECONDS * scale, date_format=unit)[0].tolist() == expected.tolist()
    assert parse_times(SECONDS * scale, "number")[0].tolist() == (SECONDS * scale).tolist()


def test_numbers_that_are_no_times_stay_numbers() -> None:
    for values in ([5, 6], [1_577_836_800, 12], [999_999_999, 1_000_000_001]):
        assert parse_times(pd.Series(values, name="t"))[0].tolist() == values


def test_dates_in_other_formats() -> None:
    expected = ["2020-03-04", "2020-05-06"]
    for texts, how in ((["04.03.2020", "06.05.2020"], "%d.%m.%Y"), ([4032020, 6052020], "%d%m%Y")):
        if how == "%d%m%Y":
            texts = [f"0{number}" for number in texts]
        times, _ = parse_times(pd.Series(texts, name="t"), date_format=how)
        assert times.astype("datetime64[D]").astype(str).tolist() == expected
    hours, _ = parse_times(pd.Series([2020010112, 2020010113], name="t"), date_format="%Y%m%d%H")
    assert hours.astype("datetime64[h]").astype(str).tolist() == ["2020-01-01T12", "2020-01-01T13"]


@pytest.mark.parametrize(
    ("values", "how", "sentence"),
    [
        (["04/03/2020", "06/05/2020"], None, r"month or the day first.*--date-format"),
        ([2020010112, 2020010113], None, r"Unix seconds or as dates with hours.*--date-format"),
        (["soon", "later"], None, "--date-format"),
        (["04.03.2020", "soon"], "%d.%m.%Y", r"'soon' in row 2, which is not written as %d\.%m\.%Y.*--date-format"),
        (["soon"], "unix", "not written as unix"),
        (["04.03.2020"], "%Q", r"'%Q' cannot be used.*--date-format|not written as %Q"),
    ],
)
def test_times_that_cannot_be_read_name_the_option(values: list[Any], how: str | None, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        parse_times(pd.Series(values, name="t"), date_format=how)
