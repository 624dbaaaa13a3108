"""Files in the index that are none of its parts, runs that vanish or move, and clocks that differ."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from driftline.record import index_part
from driftline.record.index_part import read_rows
from driftline.record.run import drop_damaged, load, runs_in
from driftline.store import check, index
from driftline.store.store import Store

from .test_index import assert_equal, folder, write_run

__all__ = ["folder"]


def keys(folder: Path) -> list[str]:
    return [run.key for run in Store(folder).record(tables=("scores",)).runs]


def of_another_format(folder: Path, number: str) -> Path:
    """Write a part with other columns, whose name is the hash of its content."""
    content = io.BytesIO()
    pq.write_table(pa.table({"x": [1]}), content)
    path = folder / f"index/{number}{hashlib.sha256(content.getvalue()).hexdigest()}.parquet"
    path.write_bytes(content.getvalue())
    return path


def test_parts_of_other_formats_are_not_read_and_older_ones_are_removed(folder: Path) -> None:
    Store(folder).record()
    ours = list(folder.glob("index/*"))
    older = [of_another_format(folder, ""), of_another_format(folder, f"{index_part.FORMAT - 1}-")]
    newer = of_another_format(folder, f"{index_part.FORMAT + 1}-")
    assert keys(folder) == ["a", "b", "c"]
    Store(folder).clean_up()
    assert not any(path.exists() for path in older)
    assert all(path.exists() for path in (*ours, newer))


def test_what_is_no_file_and_what_cannot_be_opened_is_left_out(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Store(folder).record()
    (folder / f"index/{index_part.FORMAT}-folder.parquet").mkdir()
    (folder / f"index/{index_part.FORMAT}-0link.parquet").symlink_to("nowhere")
    if hasattr(os, "mkfifo"):
        os.mkfifo(folder / f"index/{index_part.FORMAT}-pipe.parquet")  # opening it would wait for ever
    assert keys(folder) == ["a", "b", "c"]

    def deny(path: str) -> None:
        raise PermissionError(path)

    monkeypatch.setattr("driftline.record.index_part.pa.OSFile", deny)
    assert keys(folder) == ["a", "b", "c"]


def test_a_run_that_is_removed_while_it_is_read_leaves_the_others(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As another process may do between the verification of a file and its reading."""

    def read_after_removal(path: Path) -> pa.Table:
        if path.parent.name == "b" and path.exists():
            check.remove(Store(folder), "runs/b")
        return read_rows(path)

    monkeypatch.setattr(index_part, "read_rows", read_after_removal)
    assert keys(folder) == ["a", "c"]
    assert keys(folder) == ["a", "c"]


def test_a_query_names_runs_by_their_keys_also_in_renamed_folders(folder: Path) -> None:
    for name, other in (("a", "elsewhere"), ("b", "a"), ("elsewhere", "b")):
        (folder / "runs" / name).rename(folder / "runs" / other)
    sql = "select run, seed, value from runs join scores using (run) order by run, value"
    found = Store(folder).query(sql)
    shutil.rmtree(folder / "index")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index, "SETTLED", 3600.0)
        pd.testing.assert_frame_equal(found, Store(folder).query(sql))
    assert found["value"].tolist() == [0, 0.25, 0.5, 0.25, 0.5, 1, 0.25, 0.5, 2]  # the first of each run is its seed
    assert found["seed"].tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_a_folder_whose_name_is_no_text_is_a_damaged_run(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    try:
        os.mkdir(os.path.join(os.fsencode(folder), b"runs", b"\xff"))
    except OSError:
        pytest.skip("this file system has names of text alone")
    assert keys(folder) == ["a", "b", "c"]
    assert r"1 damaged run(s) left out: \xff (card.json:" in caplog.text


def test_the_store_may_have_any_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "SETTLED", -1.0)
    store = tmp_path / "läufe 漢 'x\" #1 %20"
    Store.create(store)
    write_run(store, "a", [0.0, 0.5])
    for _ in range(2):
        assert_equal(list(Store(store).record().runs), list(load(store).runs))
        assert len(Store(store).query("select * from scores")) == 2


@pytest.mark.parametrize("ahead", [-3600.0, 3600.0])
def test_files_settle_by_the_clock_of_the_disk(folder: Path, monkeypatch: pytest.MonkeyPatch, ahead: float) -> None:
    """The disk may be another machine's, whose clock differs from ours."""
    now = time.time
    monkeypatch.setattr("driftline.store.index.time.time", lambda: now() + ahead)
    monkeypatch.setattr(index, "SETTLED", 60.0)
    assert keys(folder) == ["a", "b", "c"]
    assert not (folder / "index").exists()
    monkeypatch.setattr(index, "SETTLED", -60.0)
    assert keys(folder) == ["a", "b", "c"]
    assert len(list(folder.glob("index/*"))) == 1
    assert not list(folder.glob(".clock*"))


def test_a_store_without_runs_has_none(tmp_path: Path) -> None:
    Store.create(tmp_path)
    assert keys(tmp_path) == []
    (tmp_path / "runs").mkdir()
    assert keys(tmp_path) == []


def test_a_run_that_goes_and_comes_back_is_what_it_is_now(folder: Path, tmp_path_factory: Any) -> None:
    Store(folder).record()
    aside = tmp_path_factory.mktemp("aside") / "b"
    shutil.move(folder / "runs/b", aside)
    assert keys(folder) == ["a", "c"]
    shutil.move(aside, folder / "runs/b")
    write_run(folder, "a", [7.0, 0.5])
    assert_equal(
        list(Store(folder).record(tables=("scores",)).runs), drop_damaged(runs_in(folder), ("scores", "trivial_scores"))
    )
    assert Store(folder).find("a").seed == 7
