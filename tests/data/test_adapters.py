"""A user's own forms of datasets: map-style, pairs of arrays, functions of them."""

import sys

import numpy as np
import pytest
from PIL import Image

import driftline
from driftline.data import load
from driftline.data.adapters import as_dataset
from driftline.errors import UserError
from driftline.lazy_rows import LazyRows

CODE = """
import numpy as np
import pandas as pd
from PIL import Image
from driftline import Samples

PIXELS = np.random.default_rng(0).integers(0, 256, (12, 8, 8, 3), dtype=np.uint8)

class Pictures:
    classes = ["ant", "bee", "cat"]
    reads = 0
    def __len__(self):
        return len(PIXELS)
    def __getitem__(self, k):
        Pictures.reads += 1
        return Image.fromarray(PIXELS[k]), k % 3

class WithTargets(Pictures):
    targets = [k % 3 for k in range(12)]

pictures, listed = Pictures(), WithTargets()
pair = (PIXELS, np.arange(12) % 2)
samples = Samples(PIXELS, np.linspace(0, 1, 12), time=np.arange(12))
frame = pd.DataFrame({"day": np.arange(12)[::-1], 2: np.linspace(0, 1, 12), "left": list("ab") * 6})

def made():
    return WithTargets()

def chosen(folders, *, n: int = 4):
    return PIXELS[:n], np.arange(n) % 2

def mapped():
    return np.load("pixels.npy", mmap_mode="r"), np.load("labels.npy", mmap_mode="r")

def floats():
    return [(PIXELS[k] / 255, k % 2) for k in range(4)]

def sizes():
    return [(PIXELS[k, : 4 + k], k % 2) for k in range(4)]

def single():
    return [PIXELS[0], PIXELS[1], PIXELS[2]]

def classless():
    return PIXELS, np.array(["cat", "dog"] * 6)

def table():
    return {"x": PIXELS, "y": np.arange(12) % 2}

number = 3
"""
PIXELS = np.random.default_rng(0).integers(0, 256, (12, 8, 8, 3), dtype=np.uint8)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(CODE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", ["pictures", "listed", "made"])
def test_a_map_style_dataset(folder, name):
    data = load(f"mine.py:{name}")
    assert isinstance(data.samples.x, LazyRows)
    np.testing.assert_array_equal(data.samples.x, PIXELS)
    assert data.samples.y.tolist() == [k % 3 for k in range(12)]
    assert data.task.classes == ("ant", "bee", "cat")


def test_listed_classes_need_no_image(folder):
    kind = type(load("mine.py:listed").samples.x.source.dataset)
    pictures = sys.modules[kind.__module__].Pictures
    before = pictures.reads
    assert len(load("mine.py:listed").samples) == 12
    assert pictures.reads == before + 1  # for the shape


def test_pairs_of_arrays_and_options(folder):
    data = load("mine.py:pair")
    np.testing.assert_array_equal(data.samples.x, PIXELS)
    assert (data.samples.y.tolist(), data.task.classes) == ([0, 1] * 6, ("0", "1"))
    assert len(load("mine.py:chosen", {"n": 6}).samples) == 6
    with pytest.raises(UserError, match=r"no option of dataset 'mine\.py:made' 'n'"):
        load("mine.py:made", {"n": 6})


def test_a_pair_of_lists_is_one_of_arrays():
    data = as_dataset("lists", ([[0.5, 1.0], [2.0, 3.0]], [1, 0]))
    assert data.fingerprint == as_dataset("lists", (np.array([[0.5, 1.0], [2.0, 3.0]]), np.array([1, 0]))).fingerprint


def test_samples_and_tables(folder):
    data = load("mine.py:samples")
    assert (data.samples.y[-1], data.task.center, data.samples.time[-1]) == (1.0, pytest.approx(1 / 22), 11)
    table = load("mine.py:frame", {"time": "day", "target": "left"})
    assert table.task.classes == ("a", "b")
    assert table.samples.x.ravel().tolist() == np.linspace(1, 0, 12, dtype=np.float32).tolist()
    assert table.samples.id.tolist() == list(range(11, -1, -1))


def test_mapped_arrays_stay_on_disk(folder):
    np.save("pixels.npy", PIXELS)
    np.save("labels.npy", np.arange(12) % 2)
    data = load("mine.py:mapped")
    assert isinstance(data.samples.x.source, np.memmap)
    assert data.fingerprint == load("mine.py:pair").fingerprint


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("floats", r"ndarray of shape \(8, 8, 3\) and type float64: let it return images as bytes.*ToTensor"),
        ("sizes", r"images of the shapes \(4, 8, 3\) and \(5, 8, 3\): let it resize them"),
        ("single", "returned a ndarray for an index: expected"),
        ("classless", r"answers of shape \(12,\) and type <U3, not 12 numbers"),
        ("table", "is a dict: expected a driftline.data.Dataset, samples, arrays"),
        ("number", "is not a driftline.data.Dataset"),
    ],
)
def test_other_things_are_refused(folder, name, words):
    with pytest.raises(UserError, match=words):
        assert load(f"mine.py:{name}").fingerprint


def test_a_path_after_the_name(tmp_path):
    for name in ("ant", "bee"):
        (tmp_path / name).mkdir()
        Image.fromarray(PIXELS[0]).save(tmp_path / name / "0.png")
    short, long = (
        load(f"image-folders:{tmp_path}", {"size": 8}),
        load("image-folders", {"path": str(tmp_path), "size": 8}),
    )
    assert short.fingerprint == long.fingerprint


def test_a_run(folder):
    spec = {
        "benchmark": "open-world",
        "data": "mine.py:many",
        "model": {"name": "conv-1", "width": 4},
        "methods": ["ncm"],
        "options": {"class_size_law": "20/(1+r)", "upstream_updates": 2},
    }
    more = "\ndef many():\n    return np.tile(PIXELS, (20, 1, 1, 1)), np.arange(240) % 12\n"
    (folder / "mine.py").write_text(CODE + more)
    (run,) = driftline.run(spec, runs=folder / "runs").runs
    assert run.card.data.fingerprint == load("mine.py:many").fingerprint
