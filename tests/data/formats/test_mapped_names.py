"""Names in a temporary file: equal to names in memory, and not in memory."""

import tracemalloc

import numpy as np
import pytest
from PIL import Image

from driftline.data import load
from driftline.data.formats import mapped_names as module
from driftline.data.formats.mapped_names import mapped_names
from driftline.errors import DiskError


def test_names_of_several_blocks_and_widths(monkeypatch):
    monkeypatch.setattr(module, "NAMES_AT_ONCE", 3)
    parts = [[f"a/{'x' * k}.png" for k in range(7)], [], ["ü/1.png"]]
    names, counts = mapped_names(iter(part) for part in parts)
    assert names.tolist() == [name for part in parts for name in part]
    assert counts == [7, 0, 1]
    assert [part.tolist() for part in mapped_names([[]])[:1]] == [[]]
    assert type(names[[1, 0]]) is np.ndarray


def test_names_take_no_memory():
    parts = [(f"{letter}/{k:060d}.png" for k in range(20_000)) for letter in "ab"]
    tracemalloc.start()
    names, _ = mapped_names(parts)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert names.nbytes == 40_000 * 66 * 4
    assert peak < names.nbytes


def test_a_full_disk_is_a_sentence(monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "save", full)
    with pytest.raises(DiskError, match="the disk is full"):
        mapped_names([["a"]])


def test_without_a_cache_folder_the_folder_of_temporary_files_is_used(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / "file" / name)
    assert mapped_names([["a"]])[0].tolist() == ["a"]


def test_pictures_are_sorted_by_folder_then_name(tmp_path):
    """As the parts of paths are: a-b comes after a, though - comes before /."""
    inside = ("b-c/1.png", "b/2.PNG", "b/sub/1.png", "b.png", ".hidden.png", "b/notes.txt")
    for name in (*(f"ant/{name}" for name in inside), "bee/1.png"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.zeros((8, 8, 3), np.uint8)).save(tmp_path / name, format="png")
    data = load("image-folders", {"path": str(tmp_path), "size": 8})
    found = ["ant/b/2.PNG", "ant/b/sub/1.png", "ant/b-c/1.png", "ant/b.png", "bee/1.png"]
    assert data.samples.id.tolist() == found
    assert data.samples.y.tolist() == [0, 0, 0, 0, 1]
