"""Queries read the store and can do nothing else."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pandas as pd
import pytest

from driftline.errors import DamagedFile, UserError
from driftline.store.query import SANDBOX, select

RUNS = pd.DataFrame({"run": ["a", "b"], "method": ["ft", "er"]})


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / "runs" / name / "scores.parquet" for name in "ab"]
    frames = [
        pd.DataFrame({"metric": ["tas", "sh"], "value": [0.5, 2.0], "extra": [None, None]}),
        pd.DataFrame({"metric": ["tas"], "value": [1], "extra": ["x"], "more": [7]}),
    ]
    for path, frame in zip(paths, frames, strict=True):
        path.parent.mkdir(parents=True)
        frame.to_parquet(path, index=False)
    return paths


def rows(sql: str, files: list[Path]) -> list[tuple[object, ...]]:
    found = select(sql, {"runs": RUNS}, {"scores": [(path, path.parent.name) for path in files], "answers": []})
    return [tuple(None if pd.isna(cell) else cell for cell in row) for row in found.itertuples(index=False)]


def test_files_with_different_columns_are_one_table(files: list[Path]) -> None:
    assert rows("select run, metric, value, extra, more from scores order by all", files) == [
        ("a", "sh", 2.0, None, None),
        ("a", "tas", 0.5, None, None),
        ("b", "tas", 1.0, "x", 7.0),
    ]
    joined = "select method, avg(value) from scores join runs using (run) where metric = 'tas' group by all order by 1"
    assert rows(joined, files) == [("er", 1.0), ("ft", 0.5)]
    assert rows("pivot scores on metric using sum(value) group by run order by run", files) == [
        ("a", 2.0, 0.5),
        ("b", None, 1.0),
    ]
    assert rows("select count(*), count(run) from answers", files) == [(0, 0)]


@pytest.mark.parametrize(
    "sql",
    [
        "copy (select 1 as a) to '{file}' (use_tmp_file false)",
        "with x as (copy (select 1 as a) to '{file}' (use_tmp_file false)) select * from x",
        "select 1; copy (select 1 as a) to '{file}' (use_tmp_file false)",
        "select * from query('copy (select 1) to ''{file}''')",
        "copy scores to '{folder}/new.csv'",
        "export database '{folder}/new'",
        "attach '{folder}/new.db' as other",
        "insert into runs values ('c', 'x')",
        "create table new as select 1",
        "select * from read_text('{secret}')",
        "select * from '{file}'",
        "select * from read_parquet('{file}')",
        "select * from glob('{folder}/*')",
        "select * from files",
        "set enable_external_access = true",
        "set lock_configuration = false",
        "install httpfs",
        "",
        "-- nothing",
        "selekt 1",
        "select '\udcff'",
    ],
)
def test_nothing_but_reading_the_tables_is_possible(tmp_path: Path, files: list[Path], sql: str) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(UserError) as error:
        rows(sql.format(file=files[0], folder=tmp_path, secret=secret), files)
    assert "\n" not in str(error.value)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_the_folder_of_temporary_files_cannot_be_read(
    tmp_path: Path, files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".tmp").mkdir()
    (tmp_path / ".tmp" / "secret.txt").write_text("secret")
    for sql in ("select * from read_text('.tmp/secret.txt')", "select * from glob('.tmp/*')"):
        with pytest.raises(UserError, match="file system operations are disabled"):
            rows(sql, files)


def test_the_configuration_is_locked() -> None:
    database = duckdb.connect()
    database.execute(SANDBOX)
    with pytest.raises(duckdb.Error, match="configuration has been locked"):
        database.execute("set threads = 1")


def test_an_extension_is_not_installed(files: list[Path]) -> None:
    with pytest.raises(UserError, match="is not in the catalog"):
        rows("select * from sqlite_scan('a.db', 'b')", files)


def test_several_statements_are_refused_by_name(files: list[Path]) -> None:
    with pytest.raises(UserError, match="a query must be a single SELECT"):
        rows("select 1; select 2", files)


def test_a_file_that_another_process_removed_is_named(files: list[Path]) -> None:
    files[0].unlink()
    with pytest.raises(DamagedFile, match=r"runs/a/scores.parquet is damaged: it cannot be read"):
        rows("select * from scores", files)
