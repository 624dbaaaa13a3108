"""Verified runs are not read again until one of their files changes."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from driftline.io.checksums import write_checked
from driftline.record.card import Card, CodeVersion, write_card
from driftline.record.parquet import write_rows
from driftline.record.run import RUNTIME, Run
from driftline.store import verified
from driftline.store.store import Store


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store with one run, whose files count as settled at once."""
    monkeypatch.setattr(verified, "SETTLED", -1.0)
    run = Store.create(tmp_path).run_folder("k1")
    run.mkdir(parents=True)
    write_rows(run / "scores.parquet", [pa.table({"value": [0.5]})])
    write_card(run, Card(key="k1", code=CodeVersion(score_revisions={"metrics.temporal": 2})))
    write_checked(run / RUNTIME, {"finished": datetime.now(UTC).isoformat()})
    return tmp_path


def verify_and_save(folder: Path) -> bool:
    store = Store(folder)
    intact = store.intact("k1")
    store.verified.save()
    return intact


def forbid_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(run: Run) -> bool:
        raise AssertionError(f"{run.folder} was read")

    monkeypatch.setattr(Run, "is_intact", fail)


def test_a_verified_run_is_not_read_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert verify_and_save(folder)
    forbid_reading(monkeypatch)
    assert Store(folder).intact("k1")
    assert Store(folder).verified.score_revisions("k1") == {"metrics.temporal": 2}


def test_a_changed_byte_is_noticed_although_size_and_time_are_the_same(folder: Path) -> None:
    assert verify_and_save(folder)
    path = folder / "runs/k1/scores.parquet"
    before, content = path.stat(), bytearray(path.read_bytes())
    content[10] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert not verify_and_save(folder)
    content[10] ^= 1
    path.write_bytes(content)
    assert verify_and_save(folder)


def test_a_missing_file_is_noticed(folder: Path) -> None:
    assert verify_and_save(folder)
    (folder / "runs/k1/scores.parquet").unlink()
    assert not Store(folder).intact("k1")
    assert not Store(folder).intact("k2")


def test_files_that_changed_just_now_are_read_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verified, "SETTLED", 3600.0)
    assert verify_and_save(folder)
    assert not (folder / verified.FILE).exists()
    forbid_reading(monkeypatch)
    with pytest.raises(AssertionError, match="was read"):
        Store(folder).intact("k1")


def test_a_damaged_list_of_verified_runs_is_ignored(folder: Path) -> None:
    assert verify_and_save(folder)
    (folder / verified.FILE).write_text("{}", encoding="utf-8")
    assert verify_and_save(folder)
    assert "k1" in (folder / verified.FILE).read_text(encoding="utf-8")
