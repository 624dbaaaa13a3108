"""Drawings of characters, from small archives and folders and from the real archives."""

import io
import zipfile

import numpy as np
import pytest

from driftline.data import data_folders, load, locate
from driftline.errors import UserError

Image = pytest.importorskip("PIL.Image")


def drawing(ink, side=105):
    """A page with ink in one corner, as the files have it: black on white, one bit for each pixel."""
    pixels = np.full((side, side), 255, np.uint8)
    pixels[:ink, :ink] = 0
    content = io.BytesIO()
    Image.fromarray(pixels).convert("1").save(content, "PNG")
    return content.getvalue()


def archive(path, entries):
    path.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(path, "w") as file:
        for name, content in entries.items():
            file.writestr(name, content)


TWO = {
    "images_a/Greek/character01/0001_01.png": drawing(105),
    "images_a/Greek/character01/0001_02.png": drawing(0),
    "images_a/Greek/character02/0002_01.png": drawing(60),
    "images_a/Greek/": b"",
    "__MACOSX/images_a/Greek/character01/._0001_01.png": b"no picture",
    "images_a/readme.txt": b"",
}
MORE = {
    "images_b/Latin/character01/0003_01.png": drawing(30),
    "images_b/Greek/character01/0001_01.png": drawing(105),
}


def test_archives_are_read_as_they_are(tmp_path):
    archive(tmp_path / "omniglot" / "a.zip", TWO)
    archive(tmp_path / "omniglot" / "b.zip", MORE)
    data = load("omniglot", {"size": 21}, [tmp_path])
    s = data.samples
    assert data.task.classes == ("Greek/character01", "Greek/character02", "Latin/character01")
    assert s.id.tolist() == [
        "Greek/character01/0001_01",
        "Greek/character01/0001_02",
        "Greek/character02/0002_01",
        "Latin/character01/0003_01",
    ]
    assert s.y.tolist() == [0, 0, 1, 2]
    assert s.x.shape == (4, 21, 21, 1)
    assert s.x.dtype == np.uint8
    assert (s.x[0] == 255).all()  # ink is white
    assert (s.x[1] == 0).all()
    np.testing.assert_allclose(s.x[2:].mean(axis=(1, 2, 3)), [255 * (60 / 105) ** 2, 255 * (30 / 105) ** 2], rtol=0.02)
    assert (s.x[2, :11, :11] == 255).all()
    assert (s.x[2, 13:] == 0).all()
    assert data.notes[0] == "4 drawings of 3 characters in 2 alphabets, at 21 x 21 pixels"
    assert data.notes[1] == "1 drawings that came before are left out"
    assert sorted(path.name for path in (tmp_path / "omniglot").iterdir()) == ["a.zip", "b.zip"]  # nothing is unpacked


def test_folders_give_the_same(tmp_path):
    (tmp_path / "packed").mkdir()
    archive(tmp_path / "packed" / "omniglot" / "a.zip", TWO)
    for name, content in TWO.items():
        if name.startswith("images_a") and not name.endswith("/"):
            path = tmp_path / "omniglot" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    packed, unpacked = (load("omniglot", folders=[where]) for where in (tmp_path / "packed", tmp_path))
    assert packed.fingerprint == unpacked.fingerprint


def test_what_is_wrong_is_said(tmp_path):
    with pytest.raises(UserError, match=r"dataset 'omniglot' not found.*brendenlake"):
        load("omniglot", folders=[tmp_path])
    (tmp_path / "omniglot").mkdir()
    with pytest.raises(UserError, match="no pictures in folders of the form alphabet/character"):
        load("omniglot", folders=[tmp_path])
    archive(tmp_path / "omniglot" / "a.zip", {"Greek/character01/1.png": b"no picture"})
    with pytest.raises(UserError, match=r"a\.zip/Greek/character01/1\.png: expected a picture"):
        load("omniglot", folders=[tmp_path])
    (tmp_path / "omniglot" / "a.zip").write_bytes(b"no archive")
    with pytest.raises(UserError, match=r"a\.zip: expected a zip archive"):
        load("omniglot", folders=[tmp_path])
    archive(tmp_path / "omniglot" / "a.zip", TWO)
    with pytest.raises(UserError, match="size=2 is not a size of a picture"):
        load("omniglot", {"size": 2}, [tmp_path])


def test_the_real_small_archives():
    try:
        folder = locate(data_folders(), ["omniglot"], "omniglot", "")
    except UserError:
        pytest.skip("omniglot is not in $DRIFTLINE_DATA or the cache folder")
    small = ["images_background_small1.zip", "images_background_small2.zip"]
    if sorted(path.name for path in folder.iterdir()) != small:
        pytest.skip(f"{folder} has other archives than the two small ones")
    data = load("omniglot")
    assert np.bincount(data.samples.y).tolist() == [20] * 242  # 136 + 156, but Greek and Latin are in both
    assert "1,000 drawings that came before are left out" in data.notes
    ink = data.samples.x.mean() / 255
    assert 0.02 < ink < 0.15
