"""Files of a store that are no files are damage, and nobody waits for them."""

import os
from pathlib import Path

import pytest

from driftline.engine.executors.status import FOLDER, read_statuses
from driftline.errors import DamagedFile, UserError
from driftline.io.checksums import file_hash, read_checked
from driftline.store.store import Store


def test_a_pipe_a_folder_and_a_missing_file_are_damage(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for read in (file_hash, read_checked):
        for name, reason in (("pipe", "it is not a file"), (".", "it is not a file"), ("none", "it is missing")):
            with pytest.raises(DamagedFile, match=reason):
                read(tmp_path / name)


@pytest.mark.parametrize("content", [None, '{"format": 1e999}', "[" * 100_000], ids=["pipe", "infinite", "deep"])
def test_an_odd_format_file_is_damage(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "store.json"
    os.mkfifo(file) if content is None else file.write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match=r"store\.json is damaged"):
        Store.open(tmp_path)


def test_a_pipe_among_the_statuses_is_left_out(tmp_path: Path) -> None:
    store = Store.create(tmp_path)
    (tmp_path / FOLDER).mkdir(exist_ok=True)
    os.mkfifo(tmp_path / FOLDER / "a.json")
    assert read_statuses(store) == []
