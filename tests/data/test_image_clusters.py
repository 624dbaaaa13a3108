"""Images in clusters: the transformations are what their names say, and no image to train on is ever examined."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from driftline.data import load, validate
from driftline.data.image_clusters import TRANSFORMATIONS, digit_clusters
from driftline.errors import UserError

CLUSTERS = ("upright", "rot90", "rot180", "mirror", "invert", "transpose+invert")


def test_what_the_transformations_do() -> None:
    image = np.array([[1.0, 2.0], [3.0, 4.0]])[None, ..., None]
    made = {name: change(image)[0, ..., 0].tolist() for name, change in TRANSFORMATIONS.items()}
    assert made == {
        "upright": [[1, 2], [3, 4]],
        "rot90": [[2, 4], [1, 3]],
        "rot180": [[4, 3], [2, 1]],
        "mirror": [[2, 1], [4, 3]],
        "invert": [[254, 253], [252, 251]],
        "transpose+invert": [[254, 252], [253, 251]],
    }


def test_sizes_ids_and_labels() -> None:
    data = digit_clusters()
    validate(data)
    s = data.samples
    assert data.clusters == CLUSTERS
    assert data.test is not None
    assert s.group is not None
    assert (~data.test).sum() == 2800
    assert np.bincount(s.group[data.test]).tolist() == [1097] * 6
    image = s.id % 1797
    assert data.base is not None
    assert data.base.tolist() == image.tolist()
    assert s.y.tolist() == load_digits().target[image].tolist()
    assert not set(image[data.test]) & set(image[~data.test]), "an image to train on is in no other set"
    assert len(set(image[~data.test])) == 700
    assert s.x.shape == (9382, 8, 8, 1)
    assert s.x.dtype == np.uint8


def test_without_noise_images_are_the_originals_transformed() -> None:
    s = digit_clusters(noise=0.0).samples
    raw = np.rint(load_digits().images / 16 * 255)
    for k, name in enumerate(CLUSTERS):
        rows = np.flatnonzero(s.group == k)[-5:]
        assert len(rows) == 5
        expected = TRANSFORMATIONS[name](raw[s.id[rows] % 1797][..., None])
        assert np.abs(s.x[rows].astype(float) - expected).max() <= 1


def test_copies_differ_in_their_noise_alone() -> None:
    s = digit_clusters(train=10, copies=2).samples
    first, second = s.x[:10].astype(float), s.x[10:20].astype(float)
    assert s.id[10:20].tolist() == (s.id[:10] + 1797).tolist()
    assert np.abs(first - second).max() > 25
    gray = (first > 100) & (first < 155) & (second > 100) & (second < 155)
    assert np.abs(first - second)[gray].mean() < 40


def test_a_model_of_upright_images_fails_elsewhere() -> None:
    data = digit_clusters()
    assert data.test is not None
    x, s = data.samples.x.reshape(len(data.samples), -1) / 255, data.samples
    model = LinearDiscriminantAnalysis().fit(x[~data.test], s.y[~data.test])
    right = [model.score(x[data.test & (s.group == k)], s.y[data.test & (s.group == k)]) for k in range(6)]
    assert right[0] > 0.85
    assert max(right[1:]) < 0.5


def test_a_seed_names_the_data() -> None:
    assert digit_clusters().fingerprint == digit_clusters().fingerprint
    assert len({digit_clusters(seed=k).fingerprint for k in range(2)}) == 2


@pytest.mark.parametrize(
    "options", [{"train": 0}, {"train": 1797}, {"copies": 0}, {"noise": -0.1}, {"noise": float("nan")}]
)
def test_impossible_options(options: dict[str, float]) -> None:
    with pytest.raises(UserError, match=f"digit-clusters: {next(iter(options))}="):
        load("digit-clusters", options)


def fashion(folder: Path) -> Path:
    """Fashion-MNIST's files with a few images each."""
    where = folder / "fashion-mnist"
    where.mkdir()
    rng = np.random.default_rng(0)
    for part, n in (("train", 30), ("t10k", 12)):
        x = rng.integers(0, 256, (n, 28, 28), dtype=np.uint8)
        images = struct.pack(">HBBIII", 0, 8, 3, n, 28, 28) + x.tobytes()
        (where / f"{part}-images-idx3-ubyte").write_bytes(images)
        labels = (np.arange(n) % 10).astype(np.uint8)
        (where / f"{part}-labels-idx1-ubyte").write_bytes(struct.pack(">HBBI", 0, 8, 1, n) + labels.tobytes())
    return folder


def test_any_images_can_be_clusters(tmp_path: Path) -> None:
    data = load("image-clusters", {"train": 20, "others": 10}, [fashion(tmp_path)])
    assert data.model == "conv-2"
    assert data.test is not None
    assert data.samples.group is not None
    assert np.bincount(data.samples.group).tolist() == [30, 10, 10, 10, 10, 10]
    image = data.samples.id % 42
    assert image[~data.test].max() < 30, "to train on are images of the official training set"
    assert image[data.test].min() >= 30
    base = load("fashion-mnist", None, [tmp_path]).samples
    mirrored = data.samples[np.flatnonzero(data.samples.group == 3)]
    np.testing.assert_array_equal(mirrored.x, base.x[mirrored.id % 42][:, :, ::-1])
    with pytest.raises(UserError, match="30 to train on and 12 others, too few for train=20 and others=13"):
        load("image-clusters", {"train": 20, "others": 13}, [tmp_path])


def test_only_images_can_be_transformed(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="made of square images, and 'tiny-qa' has none"):
        load("image-clusters", {"base": "tiny-qa"}, [tmp_path])
