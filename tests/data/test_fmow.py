"""One set of satellite pictures by number in a folder and in HDF5."""

import os
import pickle

import h5py
import numpy as np
import pytest
from PIL import Image

from driftline.data import load
from driftline.data.fmow import CLASSES, fmow
from driftline.errors import UserError
from driftline.lazy_rows import originals

RANDOM = np.random.default_rng(0)
PIXELS = RANDOM.integers(0, 256, (12, 224, 224, 3), dtype=np.uint8)
LABELS = RANDOM.integers(0, 62, 12)
PARTS = {13: ([7, 3, 5], [1]), 0: ([0, 11], [2]), 15: ([10], [4, 6])}


def listed(path, folder="fmow_v1.1/images"):
    content = {}
    for step, both in PARTS.items():
        content[step] = {k: {"image_idxs": np.array(p), "labels": LABELS[p]} for k, p in enumerate(both)} | {2: {}}
    path.write_bytes(pickle.dumps(content))
    (path.parent / folder).mkdir(parents=True)
    for k, pixels in enumerate(PIXELS):
        Image.fromarray(pixels).save(path.parent / folder / f"rgb_img_{k}.png")


def hdf5(path):
    with h5py.File(path, "w") as file:
        for step, both in PARTS.items():
            for name, part in zip(("train", "test"), both, strict=True):
                file[f"{step}/{name}/images"] = PIXELS[part]
                file[f"{step}/{name}/labels"] = LABELS[part].astype("u1")


def test_both_forms_are_one_dataset(tmp_path):
    (tmp_path / "h").mkdir()
    listed(tmp_path / "fmow.pkl")
    hdf5(tmp_path / "h" / "fmow.hdf5")
    for size in (32, 224):
        one, other = (load("fmow", {"size": size}, [where]) for where in (tmp_path, tmp_path / "h"))
        assert one.fingerprint == other.fingerprint
        np.testing.assert_array_equal(originals(one.samples.x), originals(other.samples.x))
    assert one.test is None
    marked = load("fmow", {"size": 32, "published_split": True}, [tmp_path])
    assert np.flatnonzero(marked.test).tolist() == [2, 6, 8, 9]
    s, order = one.samples, [0, 11, 2, 7, 3, 5, 1, 10, 4, 6]
    np.testing.assert_array_equal(s.x, PIXELS[order])
    assert s.y.tolist() == LABELS[order].tolist()
    assert s.time.tolist() == [2002] * 3 + [2015] * 4 + [2017] * 3
    assert s.id.tolist()[2:5] == [2002000002, 2015000000, 2015000001]
    assert (len(one.task.classes), CLASSES[0], CLASSES[30], CLASSES[61]) == (
        62,
        "airport",
        "multi-unit_residential",
        "zoo",
    )


def test_pictures_are_shrunk_by_averaging(tmp_path):
    ramp = np.repeat(np.tile(np.arange(224, dtype=np.uint8), (224, 1))[..., None], 3, axis=2)
    with h5py.File(tmp_path / "fmow.h5", "w") as file:
        for name in ("train", "test"):
            file[f"0/{name}/images"], file[f"0/{name}/labels"] = ramp[None], np.array([3])
    small = fmow([tmp_path], size=32).samples.x[0, :, 1:-1, 0].astype(float)
    np.testing.assert_allclose(small, np.tile(np.arange(1, 31) * 7 + 3, (32, 1)), atol=0.51)
    assert fmow([tmp_path]).samples.x.shape == (2, 64, 64, 3)


def test_years_chosen(tmp_path):
    hdf5(tmp_path / "fmow.hdf5")
    assert set(fmow([tmp_path], size=8, first=2010, last=2016).samples.time) == {2015}
    with pytest.raises(UserError, match="no picture from 2003 to 2004"):
        fmow([tmp_path], first=2003, last=2004)


def test_what_is_missing_is_named(tmp_path):
    listed(tmp_path / "fmow.pkl", "images")
    assert len(fmow([tmp_path], size=8).samples) == 10
    (tmp_path / "images" / "rgb_img_5.png").write_bytes(b"no picture")
    with pytest.raises(UserError, match=r"rgb_img_5\.png: expected a picture"):
        assert fmow([tmp_path], size=8).fingerprint
    (tmp_path / "images" / "rgb_img_5.png").unlink()
    with pytest.raises(UserError, match=r"rgb_img_5\.png: expected a picture, but found: .*No such file"):
        assert fmow([tmp_path], size=8).fingerprint
    (tmp_path / "images").rename(tmp_path / "elsewhere")
    with pytest.raises(UserError, match=r"no folder fmow_v1\.1/images or images"):
        fmow([tmp_path], size=8)
    with pytest.raises(UserError, match=r"none of fmow\.pkl, .*WILDS"):
        fmow([tmp_path / "elsewhere"])


def test_broken_and_hostile_files(tmp_path):
    class Evil:
        def __reduce__(self):
            return os.system, (f"touch {tmp_path / 'mark'}",)

    hdf5(tmp_path / "fmow.hdf5")
    raw = (tmp_path / "fmow.hdf5").read_bytes()
    for cut in np.linspace(0, len(raw) * 0.9, 15).astype(int):
        (tmp_path / "fmow.hdf5").write_bytes(raw[:cut])
        with pytest.raises(UserError, match=r"fmow\.hdf5: expected the HDF5 file"):
            fmow([tmp_path], size=8)
    for content, output in (
        ({0: Evil()}, "not data"),
        ({0: {k: {"image_idxs": [1], "labels": [62]} for k in (0, 1)}}, "from 0 to 61"),
        ({0: {k: {"image_idxs": [1, 2], "labels": [6]} for k in (0, 1)}}, "4 inputs but 2 labels"),
        ({0: {k: {"labels": [6]} for k in (0, 1)}}, "no 'image_idxs'"),
    ):
        (tmp_path / "fmow.pkl").write_bytes(pickle.dumps(content))
        with pytest.raises(UserError, match=rf"fmow\.pkl: expected Wild-Time's pickle, but found: .*{output}"):
            fmow([tmp_path], size=8)
    assert not (tmp_path / "mark").exists()


def test_a_size_that_cannot_be(tmp_path):
    hdf5(tmp_path / "fmow.hdf5")
    with pytest.raises(UserError, match="size=0 is not a size"):
        fmow([tmp_path], size=0)


def test_an_hdf5_file_is_read_when_pictures_are_needed(tmp_path, monkeypatch):
    monkeypatch.setenv("DRIFTLINE_IMAGE_CACHE", "0")
    hdf5(tmp_path / "fmow.hdf5")
    x = pickle.loads(pickle.dumps(fmow([tmp_path], size=224).samples.x))
    np.testing.assert_array_equal(x[[9, 2, 5]], PIXELS[[6, 2, 5]])
    (tmp_path / "fmow.hdf5").unlink()
    with pytest.raises(UserError, match=r"fmow\.hdf5: expected the HDF5 file.*No such file"):
        x[0]


def test_wilds_folder_alone(tmp_path):
    rows = [  # split, category, time; a picture's number is its row
        ("train", "zoo", "2012-12-31T23:59:00Z"),
        ("seq", "zoo", "2012-01-01T00:00:00Z"),
        ("train", "dam", "2013-01-01T00:00:00Z"),  # WILDS' out-of-distribution years, but not of those splits
        ("test", "park", "2016-01-01T00:00:00Z"),
        ("val", "airport", "2015-05-05T00:00:00Z"),
        ("train", "wind_farm", "2002-03-03T00:00:00Z"),
        ("val", "barn", "2016-05-05T00:00:00Z"),
        ("test", "tower", "2012-05-05T00:00:00Z"),
    ]
    folder = tmp_path / "fmow_v1.1"
    (folder / "images").mkdir(parents=True)
    lines = [f"{split},p,{category},{time},1.0" for split, category, time in rows]
    (folder / "rgb_metadata.csv").write_text("\n".join(["split,img_path,category,timestamp,lat", *lines]))
    for k in (0, 3, 4, 5):
        Image.fromarray(PIXELS[k]).save(folder / "images" / f"rgb_img_{k}.png")
    data = load("fmow", {"size": 224}, [tmp_path])
    np.testing.assert_array_equal(data.samples.x, PIXELS[[5, 0, 4, 3]])
    assert [CLASSES[k] for k in data.samples.y] == ["wind_farm", "zoo", "airport", "park"]
    assert data.samples.time.tolist() == [2002, 2012, 2015, 2016]
    with pytest.raises(UserError, match=r"\(rgb_metadata\.csv\) has no test parts: leave data\.published_split out"):
        fmow([tmp_path], published_split=True)
    table = folder / "rgb_metadata.csv"
    table.write_text(table.read_text().replace("zoo", "moon"))
    with pytest.raises(UserError, match=r"rgb_metadata\.csv: expected WILDS' .*the category 'moon'"):
        fmow([tmp_path])
    table.write_text("split,category\ntrain,zoo\n")
    with pytest.raises(UserError, match=r"rgb_metadata\.csv: expected WILDS' .*timestamp"):
        fmow([tmp_path])
