from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from driftline.errors import DiskError, UserError
from driftline.io import atomic
from driftline.io.atomic import write_bytes, write_json, write_then_rename


def test_a_crash_leaves_the_old_file_and_no_litter(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt), write_then_rename(path) as temporary:  # noqa: PT012
        temporary.write_text("half")
        raise KeyboardInterrupt
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]


def test_nothing_is_visible_before_the_end(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "er" / "file"
    with write_then_rename(path) as temporary:
        temporary.write_text("new")
        assert not path.exists()
    assert path.read_text() == "new"
    assert os.listdir(path.parent) == ["file"]


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (errno.ENOSPC, "disk is full"),
        (errno.EDQUOT, "quota"),
        (errno.EFBIG, "larger than the system allows"),
        (errno.EACCES, "permission denied"),
    ],
)
@pytest.mark.parametrize("where", ["fsync", "replace"])
def test_a_refusing_disk_is_a_sentence(
    code: int, reason: str, where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    write_bytes(path, b"old")

    def refuse(*args: Any) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(atomic.os, where, refuse)
    with pytest.raises(UserError, match=reason) as caught:
        write_bytes(path, b"new")
    assert str(path) in str(caught.value)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_other_errors_are_not_hidden(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), write_then_rename(tmp_path / "file"):
        pass  # nothing was written


def test_a_folder_that_cannot_be_made_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **more: Any) -> None:
        raise FileNotFoundError(errno.ENOENT, "as below /proc")

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(UserError, match="its folder cannot be made"):
        write_bytes(tmp_path / "deep" / "file", b"new")


@pytest.mark.parametrize("name", ["", "a\0b", "s3://bucket/x"])
def test_an_impossible_file_name_is_a_sentence(name: str) -> None:
    with pytest.raises(DiskError, match="it is not the name of a file"):
        write_bytes(Path(name), b"")


def test_json_is_canonical(tmp_path: Path) -> None:
    write_json(tmp_path / "a", {"b": 1, "a": "ä"})
    assert (tmp_path / "a").read_text(encoding="utf-8") == '{\n "a": "ä",\n "b": 1\n}\n'
    with pytest.raises(ValueError, match="JSON"):
        write_json(tmp_path / "b", float("nan"))
    assert not (tmp_path / "b").exists()
