"""The idx files of Fashion-MNIST, packed or not."""

import gzip
import struct

import numpy as np
import pytest

from driftline.data import data_folders, load, locate
from driftline.errors import UserError

RANDOM = np.random.default_rng(0)
IMAGES = RANDOM.integers(0, 256, (5, 28, 28), dtype=np.uint8)
LABELS = np.array([9, 0, 3, 3, 2], np.uint8)


def idx(array, kind=8):
    return struct.pack(f">HBB{array.ndim}I", 0, kind, array.ndim, *array.shape) + array.tobytes()


def write(folder, images=IMAGES, labels=LABELS, pack=True):
    folder.mkdir(parents=True, exist_ok=True)
    for name, x, y in (("train", images[:3], labels[:3]), ("t10k", images[3:], labels[3:])):
        for kind, raw in (("images-idx3", idx(x)), ("labels-idx1", idx(y))):
            file = folder / f"{name}-{kind}-ubyte{'.gz' if pack else ''}"
            file.write_bytes(gzip.compress(raw) if pack else raw)


@pytest.mark.parametrize(("folder", "pack"), [("fashion-mnist", True), ("FashionMNIST/raw", False)])
def test_both_forms(tmp_path, folder, pack):
    write(tmp_path / folder, pack=pack)
    data = load("fashion-mnist", folders=[tmp_path])
    np.testing.assert_array_equal(data.samples.x[..., 0], IMAGES)
    assert data.samples.y.tolist() == [9, 0, 3, 3, 2]
    assert data.test.tolist() == [False, False, False, True, True]
    assert data.task.classes[9] == "ankle boot"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "unpack_from requires"),
        (idx(IMAGES[0]), r"numbers of kind 8 in 2 dimension"),
        (idx(IMAGES[:3], kind=13), "numbers of kind 13"),
        (idx(IMAGES[:3])[:-1], "cannot reshape"),
    ],
)
def test_wrong_content(tmp_path, content, reason):
    write(tmp_path / "fashion-mnist")
    (tmp_path / "fashion-mnist" / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(content))
    with pytest.raises(UserError, match=rf"train-images-idx3-ubyte\.gz: expected an idx file.*{reason}"):
        load("fashion-mnist", folders=[tmp_path])


def test_labels_that_do_not_fit(tmp_path):
    write(tmp_path / "fashion-mnist", labels=np.array([1, 2, 10, 0, 0], np.uint8))
    with pytest.raises(UserError, match="found: the label 10"):
        load("fashion-mnist", folders=[tmp_path])
    (tmp_path / "fashion-mnist" / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(LABELS[:2])))
    with pytest.raises(UserError, match="found: 3 images but 2 labels"):
        load("fashion-mnist", folders=[tmp_path])


def test_a_missing_file_and_a_missing_folder(tmp_path):
    with pytest.raises(UserError, match="none of fashion-mnist, FashionMNIST/raw"):
        load("fashion-mnist", folders=[tmp_path])
    write(tmp_path / "fashion-mnist")
    (tmp_path / "fashion-mnist" / "t10k-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(UserError, match=r"none of t10k-labels-idx1-ubyte\.gz"):
        load("fashion-mnist", folders=[tmp_path])


def test_the_real_clothes():
    try:
        folder = locate(data_folders(), ["fashion-mnist"], "fashion-mnist", "").parent
    except UserError:
        pytest.skip("fashion-mnist is not in $DRIFTLINE_DATA or the cache folder")
    data = load("fashion-mnist", folders=[folder])
    assert np.bincount(data.samples.y[~data.test]).tolist() == [6000] * 10
    assert np.bincount(data.samples.y[data.test]).tolist() == [1000] * 10
    np.testing.assert_allclose(data.samples.x[:60000].mean() / 255, 0.2860, atol=5e-4)
