"""The standard batches of CIFAR, small ones written here and the real ones where they are."""

import os
import pickle
from pathlib import Path

import numpy as np
import pytest

from driftline.data import data_folders, load, locate
from driftline.data.cifar import CLASSES, FINE_CLASSES_BY_COARSE
from driftline.errors import UserError

RANDOM = np.random.default_rng(0)
FINE = sorted(name for line in FINE_CLASSES_BY_COARSE for name in line.split())


def write(path, n, **labels):
    """A batch as in the original files: planes of red, green and blue, row by row."""
    pixels = RANDOM.integers(0, 256, (n, 3, 32, 32), dtype=np.uint8)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(pickle.dumps({"data": pixels.reshape(n, 3072), "filenames": ["x"] * n, **labels}, protocol=2))
    return pixels.transpose(0, 2, 3, 1)


@pytest.fixture
def ten(tmp_path):
    folder = tmp_path / "cifar-10-batches-py"
    images = [write(folder / f"data_batch_{k}", 4, labels=[k, 0, 9, 1]) for k in range(1, 6)]
    return tmp_path, np.concatenate([*images, write(folder / "test_batch", 3, labels=[7, 8, 9])])


def hundred(folder, n=10):
    fine = [3 * k % 100 for k in range(n)]
    coarse = [next(i for i, line in enumerate(FINE_CLASSES_BY_COARSE) if FINE[f] in line.split()) for f in fine]
    for part in ("train", "test"):
        write(folder / part, n, fine_labels=fine, coarse_labels=coarse)
    names = {"fine_label_names": FINE, "coarse_label_names": [f"group {k}" for k in range(20)]}
    (folder / "meta").write_bytes(pickle.dumps(names, protocol=2))
    return fine, coarse


def test_ten_classes_in_the_official_order(ten):
    folder, images = ten
    data = load("cifar10", folders=[folder])
    np.testing.assert_array_equal(data.samples.x, images)
    assert data.samples.y.tolist() == [label for k in range(1, 6) for label in (k, 0, 9, 1)] + [7, 8, 9]
    assert data.samples.id.tolist() == list(range(23))
    assert np.flatnonzero(data.test).tolist() == [20, 21, 22]
    assert data.task.classes == CLASSES
    assert data.model == "conv-2"


def test_a_hundred_classes_are_twenty_with_sub_classes(tmp_path):
    fine, coarse = hundred(tmp_path / "cifar-100-python")
    data = load("cifar100", folders=[tmp_path])
    assert data.samples.y.tolist() == coarse * 2
    assert data.samples.group.tolist() == fine * 2
    assert data.test.tolist() == [False] * 10 + [True] * 10
    assert [FINE[k] for k in data.subclasses[0]] == ["otter", "seal", "beaver", "dolphin", "whale"]
    assert [FINE[k] for k in data.subclasses[19]] == ["streetcar", "tractor", "tank", "lawn_mower", "rocket"]
    assert sorted(k for listed in data.subclasses for k in listed) == list(range(100))
    each = load("cifar100", {"labels": "fine"}, folders=[tmp_path])
    assert each.samples.y.tolist() == fine * 2
    assert each.task.classes == tuple(FINE)
    assert each.subclasses is None


def test_labels_of_another_kind(tmp_path):
    hundred(tmp_path / "cifar-100-python")
    with pytest.raises(UserError, match="Did you mean 'coarse'"):
        load("cifar100", {"labels": "course"}, folders=[tmp_path])


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ([1], "a batch of CIFAR images"),
        ({"labels": [0]}, "no 'data'"),
        ({"data": np.zeros((2, 3072), np.uint8)}, "no 'labels'"),
        ({"data": np.zeros((2, 3072), np.uint8), "labels": [0]}, "2 images but labels of shape"),
        ({"data": np.zeros((1, 3072), np.uint8), "labels": [10]}, "from 0 to 9"),
        ({"data": np.zeros((1, 3072)), "labels": [1]}, "pixels of type float64"),
        ({"data": np.zeros((1, 3000), np.uint8), "labels": [1]}, "cannot reshape"),
    ],
)
def test_wrong_content(ten, content, reason):
    folder, _ = ten
    (folder / "cifar-10-batches-py" / "data_batch_3").write_bytes(pickle.dumps(content))
    with pytest.raises(
        UserError, match=f"data_batch_3: expected a batch of CIFAR images, but found: .*{reason}|{reason}"
    ):
        load("cifar10", folders=[folder])


def test_coarse_and_fine_labels_that_do_not_belong_together(tmp_path):
    folder = tmp_path / "cifar-100-python"
    hundred(folder)
    write(folder / "train", 1, fine_labels=[FINE.index("otter")], coarse_labels=[1])
    with pytest.raises(UserError, match="images of group 1 that are none of flatfish trout"):
        load("cifar100", folders=[tmp_path])


def test_a_hostile_batch_does_nothing(ten, tmp_path):
    class Evil:
        def __reduce__(self):
            return os.system, (f"touch {tmp_path / 'mark'}",)

    (ten[0] / "cifar-10-batches-py" / "test_batch").write_bytes(pickle.dumps({"data": Evil()}))
    with pytest.raises(UserError, match="not data"):
        load("cifar10", folders=[ten[0]])
    assert not (tmp_path / "mark").exists()


def test_a_missing_batch_and_a_missing_folder(ten, tmp_path):
    (ten[0] / "cifar-10-batches-py" / "data_batch_2").unlink()
    with pytest.raises(UserError, match="data_batch_2"):
        load("cifar10", folders=[ten[0]])
    with pytest.raises(UserError, match=r"none of cifar-100-python, .*Get cifar-100-python\.tar\.gz"):
        load("cifar100", folders=[tmp_path / "nowhere"])


def test_a_part_of_the_images_is_called_so(ten, tmp_path):
    hundred(tmp_path / "cifar-100-python-subset")
    for name, folder, n in (("cifar10", ten[0], "20 training and 3"), ("cifar100", tmp_path, "10 training and 10")):
        output = f"{n} test images in the official order; this is a part of the 60,000 images"
        assert load(name, folders=[folder]).notes == (output,)


def real(*names) -> Path:
    try:
        return locate(data_folders(), names, "cifar", "").parent
    except UserError:
        pytest.skip(f"{' or '.join(names)} is not in $DRIFTLINE_DATA or the cache folder")


def test_the_real_ten_classes():
    data = load("cifar10", folders=[real("cifar-10-batches-py")])
    assert data.samples.x.shape == (60000, 32, 32, 3)
    assert np.bincount(data.samples.y[~data.test]).tolist() == [5000] * 10
    assert np.bincount(data.samples.y[data.test]).tolist() == [1000] * 10
    assert data.samples.y[:5].tolist() == [6, 9, 9, 4, 1]  # frog, truck, truck, deer, automobile
    assert not data.test[:50000].any()
    mean = data.samples.x[:50000].mean(axis=(0, 1, 2)) / 255
    np.testing.assert_allclose(mean, [0.4914, 0.4822, 0.4465], atol=5e-4)  # the constants everyone uses


def test_the_real_hundred_classes():
    data = load("cifar100", folders=[real("cifar-100-python", "cifar-100-python-subset")])
    assert data.task.classes[:2] == ("aquatic_mammals", "fish")
    assert data.samples.y[:3].tolist() == [11, 15, 4]
    assert data.samples.group[:3].tolist() == [19, 29, 0]  # cattle, dinosaur, apple
    assert [np.isin(data.samples.group[data.samples.y == k], data.subclasses[k]).all() for k in range(20)] == [
        True
    ] * 20
