"""One set of portraits in every standard form gives one set of samples."""

import os
import pickle
from pathlib import Path

import h5py
import numpy as np
import pytest
from PIL import Image

from driftline.data import data_folders, load, locate
from driftline.data.yearbook import PORTRAITS, yearbook
from driftline.errors import UserError

RANDOM = np.random.default_rng(0)
# Years out of order on purpose; within a year, men come first, as in a folder of portraits.
CONTENT = {
    year: (RANDOM.integers(0, 256, (n, 32, 32), dtype=np.uint8), np.sort(RANDOM.integers(0, 2, n)))
    for year, n in [(1971, 4), (1930, 6), (2013, 3), (1929, 5), (2014, 2)]
}
EXPECTED = sum(len(CONTENT[year][1]) for year in (1930, 1971, 2013))


def wild_time(path, images=lambda i: np.repeat(i[..., None] / 255.0, 3, axis=3)):
    content = {}
    for year, (x, y) in CONTENT.items():
        cut = int(0.9 * len(y))
        parts = slice(None, cut), slice(cut, None), slice(None)
        content[year] = {mode: {"images": images(x[p]), "labels": y[p]} for mode, p in enumerate(parts)}
    path.write_bytes(pickle.dumps(content))


def hdf5(path, channel=False):
    with h5py.File(path, "w") as file:
        for year, (x, y) in CONTENT.items():
            cut = int(0.9 * len(y))
            for split, part in (("train", slice(None, cut)), ("test", slice(cut, None))):
                group = file.create_group(f"{year}/{split}")
                group["images"] = x[part][..., None] if channel else x[part]
                group["labels"] = y[part].astype("u1")


def portraits(path, colour=False):
    for sex in "MF":
        (path / sex).mkdir(parents=True)
        (path / sex / ".DS_Store").write_text("not a portrait")
    for year, (x, y) in CONTENT.items():
        for i in reversed(range(len(y))):
            image = Image.fromarray(np.repeat(x[i][..., None], 3, axis=2) if colour else x[i])
            image.save(path / "MF"[y[i]] / f"{year}_Ohio_{i:02}.png")


def npz(path):
    year = np.concatenate([np.full(len(y), year, np.int16) for year, (_, y) in CONTENT.items()])
    x, y = (np.concatenate([part[k] for part in CONTENT.values()]) for k in (0, 1))
    np.savez_compressed(path, images=x, year=year, gender=y.astype("u1"), split=np.zeros(len(y), "u1"))


FORMS = {
    "yearbook.pkl": wild_time,
    "yearbook.hdf5": hdf5,
    "yearbook.hdf": lambda path: hdf5(path, channel=True),
    "yearbook.h5": hdf5,
    PORTRAITS: portraits,
    "yearbook_32x32.npz": npz,
}


@pytest.mark.parametrize("name", FORMS)
def test_every_form_gives_the_same_samples(tmp_path, name):
    FORMS[name](tmp_path / name)
    data = load("yearbook", folders=[tmp_path])
    s = data.samples
    np.testing.assert_array_equal(s.x[..., 0], np.concatenate([CONTENT[t][0] for t in (1930, 1971, 2013)]))
    assert s.y.tolist() == np.concatenate([CONTENT[t][1] for t in (1930, 1971, 2013)]).tolist()
    assert s.time.tolist() == [1930] * 6 + [1971] * 4 + [2013] * 3
    assert s.id.tolist() == [1930_00000 + i for i in range(6)] + [1971_00000 + i for i in range(4)] + [
        2013_00000 + i for i in range(3)
    ]
    assert s.x.dtype == np.uint8
    assert s.x.shape == (EXPECTED, 32, 32, 1)
    assert s.group is None
    assert data.task.classes == ("M", "F")
    assert f"{EXPECTED} portraits" in data.notes[0]
    assert name in data.notes[0]
    assert "split" in data.notes[0]


def test_one_fingerprint_for_every_form(tmp_path):
    prints = set()
    for i, (name, write) in enumerate(FORMS.items()):
        (tmp_path / str(i)).mkdir()
        write(tmp_path / str(i) / name)
        prints.add(load("yearbook", folders=[tmp_path / str(i)]).fingerprint)
    assert len(prints) == 1


@pytest.mark.parametrize("name", ["yearbook.pkl", "yearbook.hdf5", "yearbook.hdf"])
def test_the_published_split_marks_the_test_parts(tmp_path, name):
    FORMS[name](tmp_path / name)
    data = load("yearbook", {"published_split": True}, [tmp_path])
    assert np.flatnonzero(data.test).tolist() == [5, 9, 12]  # a tenth of 6, 4 and 3, rounded up
    assert load("yearbook", folders=[tmp_path]).test is None


def test_a_file_without_a_split_has_none_to_use(tmp_path):
    npz(tmp_path / "yearbook_32x32.npz")
    with pytest.raises(UserError, match=r"yearbook_32x32\.npz has no split; Wild-Time's pickle and HDF5"):
        yearbook([tmp_path], published_split=True)


def test_ids_do_not_depend_on_the_years_chosen(tmp_path):
    npz(tmp_path / "yearbook_32x32.npz")
    wide, narrow = (yearbook([tmp_path], first=f, last=t).samples for f, t in [(1900, 2020), (1971, 1971)])
    assert len(wide) == 20
    assert narrow.id.tolist() == wide.id[wide.time == 1971].tolist()
    np.testing.assert_array_equal(narrow.x, wide.x[wide.time == 1971])


def test_bytes_and_single_precision_in_a_pickle(tmp_path):
    for images in (lambda i: i, lambda i: i[..., None], lambda i: (i / 255.0).astype(np.float32)):
        wild_time(tmp_path / "yearbook.pkl", images)
        assert (yearbook([tmp_path]).samples.x[:6, ..., 0] == CONTENT[1930][0]).all()


def test_large_colour_portraits_are_shrunk_to_gray(tmp_path):
    portraits(tmp_path / PORTRAITS, colour=True)
    ramp = np.tile(np.arange(0, 192, dtype=np.uint8), (192, 1))
    Image.fromarray(np.repeat(ramp[..., None], 3, axis=2)).save(tmp_path / PORTRAITS / "M" / "1931_x.png")
    s = yearbook([tmp_path]).samples
    small = s.x[s.time == 1931][0, ..., 0].astype(float)
    np.testing.assert_allclose(small[:, 1:-1], np.tile(np.arange(1, 31) * 6 + 2.5, (32, 1)), atol=0.51)
    assert (s.x[s.time == 1930][..., 0] == CONTENT[1930][0]).all()


@pytest.mark.parametrize("name", ["yearbook.pkl", "yearbook.hdf5", "yearbook_32x32.npz"])
def test_every_cut_is_a_user_error(tmp_path, name):
    FORMS[name](tmp_path / name)
    raw = (tmp_path / name).read_bytes()
    for cut in np.linspace(0, len(raw) - 1, 60).astype(int):
        (tmp_path / name).write_bytes(raw[:cut])
        with pytest.raises(UserError, match=f"{name}: expected "):
            yearbook([tmp_path])


def test_a_cut_portrait_is_named(tmp_path):
    portraits(tmp_path / PORTRAITS)
    victim = tmp_path / PORTRAITS / "MF"[CONTENT[1971][1][0]] / "1971_Ohio_00.png"
    raw = victim.read_bytes()
    for cut in np.linspace(0, len(raw) * 0.9, 20).astype(int):
        victim.write_bytes(raw[:cut])
        with pytest.raises(UserError, match=r"1971_Ohio_00\.png: expected a PNG image"):
            yearbook([tmp_path])


def year_of(images, labels):
    return {1950: {mode: {"images": images, "labels": labels} for mode in range(3)}}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({"images": 1}, "no portrait from 1930 to 2013"),
        ([1, 2], "a list, not a dict of time steps"),
        (None, "a NoneType, not a dict of time steps"),
        ({1950: {"train": {}}}, "found: no 0"),
        ({1950: {0: {"images": []}, 1: {"images": []}}}, "found: no 'labels'"),
        (year_of(np.zeros((2, 28, 28)), [0, 1]), r"images of shape \(28, 28\)"),
        (year_of(np.zeros((2, 32, 32)), [0, 2]), "labels other than"),
        (year_of(np.zeros((2, 32, 32)), [0]), "4 images but 2 labels in 1950"),
        (year_of(np.full((1, 32, 32), 255.0), [0]), "not all from 0 to 1"),
        (year_of(np.full((1, 32, 32), np.nan), [0]), "not all from 0 to 1"),
        (year_of(np.full((1, 32, 32), -1), [0]), "not all from 0 to 255"),
        (year_of(np.random.default_rng(0).random((1, 32, 32, 3)), [0]), "colors"),
        (year_of([["text"]], [0]), "images of shape"),
    ],
)
def test_wrong_content_of_a_pickle(tmp_path, content, reason):
    (tmp_path / "yearbook.pkl").write_bytes(pickle.dumps(content))
    with pytest.raises(UserError, match=rf"yearbook\.pkl: expected Wild-Time's pickle, but found.*{reason}|{reason}"):
        yearbook([tmp_path])


def test_wrong_keys_elsewhere(tmp_path):
    np.savez(tmp_path / "yearbook_32x32.npz", images=np.zeros((1, 32, 32)), year=[1950])
    with pytest.raises(UserError, match="gender"):
        yearbook([tmp_path])
    with h5py.File(tmp_path / "yearbook.h5", "w") as file:
        file["1950"] = np.zeros(3)
    with pytest.raises(UserError, match=r"yearbook\.h5: expected the HDF5 file"):
        yearbook([tmp_path])


def test_a_portraits_folder_without_its_two_folders(tmp_path):
    (tmp_path / PORTRAITS / "M").mkdir(parents=True)
    with pytest.raises(UserError, match=f"{PORTRAITS}: expected the portraits as published"):
        yearbook([tmp_path])


def test_a_hostile_pickle_does_nothing(tmp_path):
    class Evil:
        def __reduce__(self):
            return os.system, (f"touch {tmp_path / 'mark'}",)

    (tmp_path / "yearbook.pkl").write_bytes(pickle.dumps({1950: {0: Evil()}}))
    with pytest.raises(UserError, match="not data"):
        yearbook([tmp_path])
    assert not (tmp_path / "mark").exists()


def test_an_npz_with_objects_is_refused(tmp_path):
    np.savez(tmp_path / "yearbook_32x32.npz", images=np.array([{}], object), year=[1950], gender=[0])
    with pytest.raises(UserError, match="expected an npz"):
        yearbook([tmp_path])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_that_may_not_be_read(tmp_path):
    npz(tmp_path / "yearbook_32x32.npz")
    (tmp_path / "yearbook_32x32.npz").chmod(0)
    with pytest.raises(UserError, match="Permission denied"):
        yearbook([tmp_path])


def test_not_found_says_how_to_get_it(tmp_path):
    with pytest.raises(UserError, match=r"none of yearbook\.pkl, .*Get yearbook\.pkl"):
        load("yearbook", folders=[tmp_path])


@pytest.mark.parametrize(("package", "name"), [("h5py", "yearbook.h5"), ("PIL", PORTRAITS)])
def test_a_missing_package_names_the_extra(tmp_path, monkeypatch, package, name):
    FORMS[name](tmp_path / name)
    monkeypatch.setitem(__import__("sys").modules, package, None)
    with pytest.raises(UserError, match=r"driftline\[vision\]"):
        yearbook([tmp_path])


def test_the_real_portraits():
    try:
        path: Path = locate(data_folders(), ["yearbook_32x32.npz"], "yearbook", "")
    except UserError:
        pytest.skip("yearbook_32x32.npz is not in $DRIFTLINE_DATA or the cache folder")
    s = yearbook([path.parent], first=1905).samples
    assert len(s) == 27849
    assert (s.time.min(), s.time.max()) == (1905, 2013)
    s = load("yearbook", folders=[path.parent]).samples
    assert len(s) == 27149
    assert len(np.unique(s.time)) == 84
    assert np.bincount(s.y).tolist() == [12622, 14527]
    assert (s.time <= 1970).sum() == 13769
    assert 120 < s.x.mean() < 140
