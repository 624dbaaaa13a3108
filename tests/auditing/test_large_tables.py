"""Files, folders, globs, URLs, databases and queries are read alike; large ones are drawn from by a hash of the row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import driftline
from driftline.auditing import sampling
from driftline.auditing.options import AuditOptions
from driftline.auditing.run import read_table
from driftline.auditing.sampling import Drawn, Request, drawn_from
from driftline.data.formats.dialect import Dialect
from driftline.errors import UserError

duckdb = pytest.importorskip("duckdb")
ROWS = 3000


def frame(rows: int = ROWS) -> pd.DataFrame:
    """Ten times as many rows in the second half of the days as in the first."""
    random = np.random.default_rng(0)
    day = np.sort(random.choice(360, rows, p=np.repeat([1 / 11, 10 / 11], 180) / 180))
    when = pd.Timestamp("2023-01-01") + pd.to_timedelta(day + random.random(rows), unit="D")
    made = pd.DataFrame({"when": when, "x": random.normal(size=rows).round(3), "kind": random.choice(["a", "b"], rows)})
    return made.assign(y=(made["x"] > 0).astype(int), logged=1).sort_values("when", ignore_index=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path, table = tmp_path_factory.mktemp("large"), frame()
    (path / "parts").mkdir()
    for k, part in enumerate(np.array_split(np.arange(ROWS), 3)):
        table.iloc[part].to_parquet(path / "parts" / f"p{k}.parquet", index=False)
        table.iloc[part].to_csv(path / f"p{k}.csv", index=False, sep=";", decimal=",")
    with duckdb.connect(str(path / "t.duckdb")) as database:
        database.register("given", table)
        database.execute("create table sales as select * from given")
    return path


def read(source: Any, **more: Any) -> Any:
    return read_table(source, AuditOptions(time="when", target="y", **more))[0]


def test_every_source_gives_the_same_table(folder: Path) -> None:
    import fsspec

    expected = read(frame())
    disk = fsspec.filesystem("memory")
    disk.pipe("memory://audit/p0.parquet", (folder / "parts" / "p0.parquet").read_bytes())
    first = expected.inputs.iloc[: ROWS // 3]
    sources: list[tuple[Any, dict[str, Any], pd.DataFrame]] = [
        (folder / "parts", {}, expected.inputs),
        (str(folder / "parts" / "*.parquet"), {}, expected.inputs),
        (str(folder / "p*.csv"), {}, expected.inputs),
        (folder / "t.duckdb", {}, expected.inputs),
        (folder / "t.duckdb", {"sql": 'select * from sales order by "when";'}, expected.inputs),
        (None, {"sql": f"from read_parquet('{folder}/parts/*.parquet')"}, expected.inputs),
        ("memory://audit/p0.parquet", {}, first),
        ("memory://audit", {}, first),
    ]
    for source, options, inputs in sources:
        found = read(source, **options)
        pd.testing.assert_frame_equal(found.inputs, inputs, check_dtype=False)
        assert found.rows == len(inputs)


def request(**more: Any) -> Request:
    given: dict[str, Any] = {"columns": None, "period": "auto", "rows": 20, "seed": 0, "dialect": Dialect(), **more}
    return Request("when", "y", **given)


def drawn(source: Path, **more: Any) -> Drawn:
    found = drawn_from(str(source), None, request(**more))
    assert found is not None
    return found


def test_each_period_of_the_calendar_gives_about_as_many_rows(folder: Path) -> None:
    found = drawn(folder / "parts", rows=40)
    assert found.period == "month"
    assert found.rows == ROWS
    counts = found.table.groupby(found.table["when"].dt.month).size()
    assert len(counts) == 12
    assert 20 < counts.min() <= counts.max() < 65, "though there are ten times as many rows in later months"
    merged = found.table.merge(frame(), how="left", indicator=True)
    assert (merged["_merge"] == "both").all(), "rows are whole rows of the table"
    assert found.table["when"].is_monotonic_increasing, "and in its order"
    assert f"{len(found.table):,} of 3,000 rows were read: about 40 of each month" in found.note


def test_the_same_rows_are_drawn_again_and_others_with_another_seed(folder: Path) -> None:
    one, again, other = drawn(folder / "parts"), drawn(folder / "parts"), drawn(folder / "parts", seed=1)
    pd.testing.assert_frame_equal(one.table, again.table)
    assert not one.table.equals(other.table)
    few = drawn(folder / "parts", columns=("x",))
    assert list(few.table) == ["when", "y", "x"], "only what is asked for is read"
    pd.testing.assert_frame_equal(few.table, one.table[list(few.table)])


def test_texts_of_csv_files_become_numbers_as_in_a_small_file(folder: Path) -> None:
    found = drawn(folder / "p*.csv", rows=40)
    assert found.period == "month"
    assert found.table["x"].dtype == float
    assert set(found.table["x"]) <= set(frame()["x"])


def test_periods_of_equal_numbers_of_rows_shrink_alike(folder: Path) -> None:
    found = drawn(folder / "parts", period="1500 rows", rows=25)
    assert found.period == "500 rows"
    assert 900 < len(found.table) < 1100
    with pytest.raises(UserError, match=r"'100 rows' cuts 3,000 rows into 30 periods: choose at least 150 rows"):
        drawn(folder / "parts", period="100 rows", rows=25)


def test_a_small_file_is_read_as_a_whole(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert drawn_from(str(folder / "p0.csv"), None, request()) is None
    assert drawn_from(str(folder / "parts" / "p0.parquet"), None, request()) is not None, "1,000 rows, budget 800"
    monkeypatch.setattr(sampling, "find_spec", lambda name: None)
    assert drawn_from(str(folder / "parts" / "p0.parquet"), None, request()) is None


def test_an_audit_says_how_many_rows_it_read(folder: Path) -> None:
    options: dict[str, Any] = {"time": "when", "target": "y", "predictions": "logged", "features": ["x"], "rows": 60}
    found = driftline.audit(folder / "parts", **options)
    assert found.data.name == "parts"
    assert found.data.rows == ROWS
    assert found.data.rows_used < 12 * 61
    assert "rows were read: about 60 of each month" in found.data.notes[0]
    assert found.to_dict()["data"]["rows"] == ROWS


@pytest.mark.parametrize(
    ("source", "more", "sentence"),
    [
        (None, {}, "there is nothing to audit"),
        ("t.duckdb", {"sql": "select * from nothing"}, "nothing"),
        ("t.duckdb", {"sql": "drop table sales"}, "a single SELECT"),
        ("t.duckdb", {"sql": "select 1; select 2"}, "a single SELECT"),
        ("t.duckdb", {"sql": "copy sales to 'x.csv'"}, "a single SELECT"),
        ("t.duckdb", {"sql": "selec 1"}, "--sql: Parser Error"),
        ("p0.csv", {"sql": "select 1"}, "expected a DuckDB file"),
        ("missing.duckdb", {}, "there is no database"),
        ("none*.parquet", {}, "expected Parquet files or CSV files there, but found nothing"),
        ("*", {}, "files of other or of both kinds"),
        ("parts", {"sep": ";"}, "is Parquet: leave them out"),
        ("parts", {"features": ["xx"]}, "no column of parts 'xx'"),
        ("memory://nowhere/x.parquet", {}, "cannot read memory://nowhere"),
        ("nothing://x.parquet", {}, "cannot read nothing://x.parquet"),
        (frame(50), {"sql": "select 1"}, "not from a frame"),
    ],
)
def test_sources_that_cannot_be_read(folder: Path, source: Any, more: dict[str, Any], sentence: str) -> None:
    if isinstance(source, str) and "://" not in source:
        source = folder / source
    with pytest.raises(UserError, match=sentence):
        read(source, **more)


@pytest.mark.parametrize(
    "sql", [None, "select * from elsewhere", "from read_csv('{folder}/p0.csv')", "from '{folder}/p0.csv'"]
)
def test_a_query_of_a_database_and_a_view_in_it_read_no_other_file(
    folder: Path, tmp_path: Path, sql: str | None
) -> None:
    with duckdb.connect(str(tmp_path / "v.duckdb")) as database:
        database.execute(f"create view elsewhere as from read_csv('{folder}/p0.csv')")
    with pytest.raises(UserError, match="disabled by configuration"):
        read(tmp_path / "v.duckdb", sql=sql and sql.format(folder=folder))
