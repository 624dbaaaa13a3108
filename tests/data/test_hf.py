"""Hugging Face datasets, through a stand-in for their package."""

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from driftline.data import load
from driftline.data.formats import images
from driftline.errors import UserError

PIXELS = np.random.default_rng(0).integers(0, 256, (6, 12, 10, 3), dtype=np.uint8)


class Split:
    """Rows of a split, like `datasets.Dataset`: a column by name, a row by number."""

    column_names = ("img", "label")
    features = {"label": SimpleNamespace(names=["ant", "bee"])}  # noqa: RUF012

    def __init__(self, rows):
        self.rows, self._fingerprint = rows, f"rows {rows}"

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, key):
        if isinstance(key, str):
            return [k % 2 for k in self.rows]
        return {"img": Image.fromarray(PIXELS[self.rows[key]]), "label": self.rows[key] % 2}


@pytest.fixture
def hub(monkeypatch):
    """A hub with one dataset, `pets`."""

    def load_dataset(path, config):
        if path != "pets":
            raise FileNotFoundError(f"Dataset '{path}' doesn't exist on the Hub")
        return {"train": Split([0, 1, 2, 3]), "test": Split([4, 5])}

    stub = ModuleType("datasets")
    stub.load_dataset, stub.load_from_disk = load_dataset, lambda path: Split([3, 2])
    monkeypatch.setitem(sys.modules, "datasets", stub)


def test_splits_are_training_and_test(hub):
    data = load("hf:pets", {"image": "img", "size": 8})
    assert data.samples.y.tolist() == [0, 1, 0, 1, 0, 1]
    assert data.test.tolist() == [False] * 4 + [True] * 2
    assert data.task.classes == ("ant", "bee")
    expected = [images.to_square(Image.fromarray(pixels), 8) for pixels in PIXELS]
    np.testing.assert_array_equal(data.samples.x, expected)
    np.testing.assert_array_equal(data.samples.x[[5, 0]], np.stack(expected)[[5, 0]])
    assert data.fingerprint == load("hf", {"path": "pets", "image": "img", "size": 8}).fingerprint


def test_a_folder_with_one_split(hub, tmp_path):
    data = load(f"hf:{tmp_path}", {"image": "img", "size": 8, "gray": True})
    assert (data.samples.x.shape, data.samples.y.tolist(), data.test) == ((2, 8, 8, 1), [1, 0], None)


def test_mistakes_are_sentences(hub, monkeypatch):
    with pytest.raises(UserError, match=r"no column of pets 'image'.*options image, label"):
        load("hf:pets")
    with pytest.raises(UserError, match="cannot read cows: Dataset 'cows' doesn't exist"):
        load("hf:cows")
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(UserError, match=r'needs an optional package: pip install "driftline\[hf\]"'):
        load("hf:pets")
