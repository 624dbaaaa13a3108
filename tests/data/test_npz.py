"""Images of one's own: an npz file, and class folders."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from driftline.data import Dataset, load, validate
from driftline.data.base import _bytes_of
from driftline.errors import UserError
from driftline.tasks import Classification
from driftline.types import Samples

RANDOM = np.random.default_rng(0)
X = RANDOM.integers(0, 256, (6, 8, 8, 3), dtype=np.uint8)
Y = np.array([0, 1, 2, 0, 1, 2])


def read(tmp_path, **arrays):
    np.savez(tmp_path / "mine.npz", **arrays)
    return load("npz", {"path": "mine.npz"}, [tmp_path])


def test_a_mask_and_an_array_of_their_own_are_one_test_set(tmp_path):
    masked = read(tmp_path, x=X, y=Y, test=np.arange(6) >= 4)
    apart = read(tmp_path, x=X[:4], y=Y[:4], x_test=X[4:], y_test=Y[4:])
    assert masked.fingerprint == apart.fingerprint
    np.testing.assert_array_equal(apart.samples.x, X)
    assert apart.test.tolist() == [False] * 4 + [True] * 2
    assert apart.samples.y.tolist() == Y.tolist()
    assert read(tmp_path, x=X, y=Y).fingerprint != masked.fingerprint


def test_gray_images_names_and_sub_classes(tmp_path):
    data = read(tmp_path, x=X[..., 0], y=Y, group=np.array([5, 1, 9, 4, 1, 8]), classes=np.array(["a", "b", "c"]))
    assert data.samples.x.shape == (6, 8, 8, 1)
    assert data.task.classes == ("a", "b", "c")
    assert data.subclasses == ((4, 5), (1,), (8, 9))
    assert data.test is None


@pytest.mark.parametrize(
    ("arrays", "reason"),
    [
        ({"x": X}, "no 'y'"),
        ({"y": Y}, "no 'x'"),
        ({"x": X.astype(float), "y": Y}, "fractions from 0 to 1"),
        ({"x": X[0, 0], "y": Y}, r"shape \(8, 3\)"),
        ({"x": X, "y": Y / 1}, "one class index"),
        ({"x": X, "y": Y[:5]}, "6 samples but 5"),
        ({"x": X, "y": Y, "group": Y[:5]}, "5 values of 'group'|group of shape"),
        ({"x": X, "y": Y, "x_test": X}, "no .y_test"),
        ({"x": X, "y": Y, "x_test": X, "y_test": Y, "test": Y == 0}, "a mask test beside x_test"),
        ({"x": X, "y": Y, "test": Y[:3] == 0}, r"test mask of shape \(3,\)"),
        ({"x": X, "y": Y, "test": Y == 7}, "no test samples"),
    ],
)
def test_wrong_content(tmp_path, arrays, reason):
    with pytest.raises(UserError, match=reason):
        read(tmp_path, **arrays)


def test_a_dataset_without_a_test_set_keeps_its_fingerprint():
    samples = Samples(X, Y, time=np.zeros(6, int))
    data = Dataset("mine", samples, Classification(("a", "b", "c")))
    digest = hashlib.sha256(repr(data.task).encode())
    for column in (samples.x, samples.y, samples.time, samples.id, None):
        digest.update(_bytes_of(column))
    assert data.fingerprint == digest.hexdigest()[:16]
    tested = [replace(data, test=np.arange(6) >= k) for k in (3, 4)]
    assert len({data.fingerprint, *(one.fingerprint for one in tested)}) == 3


def test_sub_classes_must_be_those_of_the_samples():
    data = Dataset("mine", Samples(X, Y, time=np.zeros(6, int)), Classification(("a", "b", "c")))
    with pytest.raises(UserError, match="no group"):
        validate(replace(data, subclasses=((0,), (1,), (2,))))
    grouped = replace(data, samples=replace(data.samples, group=Y))
    validate(replace(grouped, subclasses=((0,), (1,), (2,))))
    with pytest.raises(UserError, match="samples of class 1 in a sub-class that it does not list: 1"):
        validate(replace(grouped, subclasses=((0,), (3,), (2,))))


def folders_of(base, parts):
    k = 0
    for part in parts:
        for name in ("ant", "bee"):
            (base / part / name).mkdir(parents=True)
            for i in range(2):
                Image.fromarray(RANDOM.integers(0, 256, (16, 16, 3), dtype=np.uint8)).save(
                    base / part / name / f"{i}.png"
                )
                k += 1
    (base / parts[0] / ".cache").mkdir(exist_ok=True)
    return base


@pytest.mark.parametrize("test", ["val", "test"])
def test_folders_of_training_and_test(tmp_path, test):
    folders_of(tmp_path / "pets", ["train", test])
    (tmp_path / "pets" / "train" / "ant" / "notes.txt").write_text("not a picture")
    data = load("image-folders", {"path": "pets", "size": 16}, [tmp_path])
    assert data.samples.y.tolist() == [0, 0, 1, 1] * 2
    assert data.test.tolist() == [False] * 4 + [True] * 4
    assert data.samples.id.tolist()[::4] == ["train/ant/0.png", f"{test}/ant/0.png"]
    assert data.task.classes == ("ant", "bee")
    with Image.open(tmp_path / "pets" / test / "bee" / "1.png") as image:
        np.testing.assert_array_equal(data.samples.x[7], np.asarray(image))


def test_class_folders_only(tmp_path):
    folders_of(tmp_path / "pets", ["."])
    data = load("image-folders", {"path": str(tmp_path / "pets"), "size": 8, "gray": True}, [])
    assert data.samples.x.shape == (4, 8, 8, 1)
    assert data.test is None


def test_classes_by_the_names_of_pictures(tmp_path):
    for k, name in enumerate(["S3/sequence3/n02_7.JPEG", "1k_res/n01_1.png", "S3/sequence3/n01_2.png"]):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((8, 8, 3), 40 * k, np.uint8)).save(tmp_path / name)
    data = load("image-folders", {"path": str(tmp_path), "size": 8, "classes_by": "name"}, [])
    assert (data.task.classes, data.samples.y.tolist(), data.test) == (("n01", "n02"), [0, 0, 1], None)
    assert data.samples.id.tolist() == ["1k_res/n01_1.png", "S3/sequence3/n01_2.png", "S3/sequence3/n02_7.JPEG"]
    with pytest.raises(UserError, match=r"expected names such as CLASS_NUMBER\.jpg of two classes, but found 1"):
        load("image-folders", {"path": str(tmp_path / "1k_res"), "classes_by": "name"}, [])
    (tmp_path / "1k_res" / "cat.png").write_bytes(b"")
    with pytest.raises(UserError, match=r"expected names such as CLASS_NUMBER\.jpg, but found cat\.png"):
        load("image-folders", {"path": str(tmp_path / "1k_res"), "classes_by": "name"}, [])


def test_folders_that_do_not_fit(tmp_path):
    base = folders_of(tmp_path / "pets", ["train", "val"])
    (base / "val" / "cow").mkdir()
    with pytest.raises(UserError, match="val has a class 'cow' that the training part lacks"):
        load("image-folders", {"path": str(base)}, [])
    (base / "train" / "cow").mkdir()
    with pytest.raises(UserError, match="no picture of the class 'cow'"):
        load("image-folders", {"path": str(base)}, [])
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="two classes or more, but found 0"):
        load("image-folders", {"path": "empty"}, [tmp_path])


def test_fractions_and_whole_numbers_become_the_same_bytes(tmp_path):
    for k, x in enumerate((X, X / 255, X.astype(np.int64), (X / 255).astype(np.float32))):
        np.savez(tmp_path / f"{k}.npz", x=x, y=Y)
        assert np.array_equal(load("npz", {"path": str(tmp_path / f"{k}.npz")}).samples.x, X)


def test_a_label_that_no_dataset_reaches_is_refused(tmp_path):
    """It would take a name for each class below it: 200 million of them."""
    for label in (2 * 10**8, 100_000, -1):
        with pytest.raises(UserError, match=f"the class {label}, not a number from 0 to 99999"):
            read(tmp_path, x=X, y=np.where(Y == 2, label, Y))
    assert read(tmp_path, x=X, y=np.where(Y == 2, 99_999, Y)).task.width == 100_000


def test_sub_classes_of_many_classes_are_listed_in_one_pass(tmp_path):
    y = np.array([0, 70_000, 70_000, 5, 5, 5])
    listed = read(tmp_path, x=X, y=y, group=np.array([3, 9, 8, 1, 2, 1])).subclasses
    assert {k: of for k, of in enumerate(listed) if of} == {0: (3,), 5: (1, 2), 70_000: (8, 9)}


def test_a_path_of_an_unknown_user_or_of_another_type_is_a_sentence(tmp_path):
    for dataset in ("npz", "dated-images", "image-folders", "webdataset", "imagenet-val"):
        with pytest.raises(UserError, match=r"dataset '.*' not found"):
            load(dataset, {"path": "~nouser/x"}, [tmp_path])
        with pytest.raises(UserError, match=r"dataset '.*' not found: none of 5"):
            load(dataset, {"path": 5}, [tmp_path])
        with pytest.raises(UserError, match=r"path=.*valid string"):
            load(dataset, {"path": ["x"]}, [tmp_path])
    with pytest.raises(UserError, match=r"dataset 'dated-images': size=large: .*valid integer"):
        load("dated-images", {"path": "x", "size": "large"}, [tmp_path])


def test_texts_that_are_no_unicode_are_refused(tmp_path):
    with pytest.raises(UserError, match="not valid Unicode"):
        read(tmp_path, x=X, y=Y, classes=np.array(["a", "b", "\ud800"]))
