"""Images that are decoded when needed: equal to reading them all at once, cached within a budget, in bounded memory."""

import importlib.util
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import driftline
from driftline.data import load
from driftline.data.formats import images
from driftline.data.formats.decoded_images import DecodedImages, cache_limit
from driftline.errors import UserError
from driftline.lazy_rows import LazyRows, originals

SPECS = {
    "timeline": {
        "data": {"name": "digits", "periods": 4},
        "model": "mlp",
        "methods": [{"name": name, "updates": 10} for name in ("erm", "a-gem", "lisa", "swa")],
    },
    "open-world": {
        "data": "digit-symmetries",
        "model": {"name": "conv-1", "width": 4},
        "methods": ["ncm", {"name": "fine-tune", "train_every": 200}, {"name": "lwf", "train_every": 200}],
        "options": {"class_size_law": "100/(4+r)", "upstream_updates": 10, "head": 20},
    },
    "seq-to-final": {
        "data": "color-digits",
        "model": {"name": "conv-1", "width": 4},
        "methods": ["seq-erm", "seq-ewc"],
        "options": {
            **{"shifts": "RL", "sizes": [60, 40, 40], "test": 80, "oracle": 0, "epochs": 2, "batch": 16, "lr": [0.01]},
            **{"weight_decay": [0.0], "dropout": [0.0]},
        },
    },
    "test-time": {
        "data": "color-digits",
        "model": {"name": "conv-1", "width": 4},
        "methods": ["frozen", "tent", {"name": "eata", "fisher_images": 64}],
        "options": {
            "order": "gradual",
            "corruptions": "contrast",
            "images": 192,
            "images_per_point": 16,
            "upstream_updates": 10,
        },
    },
}


def write_images(folder, n, side=24, classes=("ant", "bee"), dated=True):
    """Write n small pictures with a date each, of a color that says the class, and some noise."""
    rng = np.random.default_rng(0)
    for k, name in enumerate(classes):
        (folder / name).mkdir(parents=True)
        for i in range(n // len(classes)):
            pixels = (60 + 120 * k + rng.integers(0, 60, (side, side + i % 3, 3))).astype(np.uint8)
            Image.fromarray(pixels).save(folder / name / f"{i:05d}_{2000 + i % 4}.png")
    return folder


class Counted(DecodedImages):
    """Images of one level each, which counts what it decodes."""

    def __init__(self, n=10, side=10):
        super().__init__(n, (side, side, 1))
        self.decoded = []

    def decode(self, row):
        self.decoded.append(row)
        return np.full(self.shape[1:], row, np.uint8)


def in_memory(dataset):
    return replace(dataset, samples=replace(dataset.samples, x=dataset.samples.x[:]))


def test_decoded_as_if_all_were_read_at_once(tmp_path):
    folder, square = write_images(tmp_path / "pets", 20), write_images(tmp_path / "square", 2)
    for name, options in (("image-folders", {}), ("dated-images", {"gray": True}), ("imagenet-val", {})):
        data = load(name, {"path": str(folder), "size": 16, **options})
        assert isinstance(data.samples.x, LazyRows)
        read = images.read_center if name == "imagenet-val" else images.read_image
        expected = np.stack([read(folder / file, 16, **options) for file in data.samples.id])
        np.testing.assert_array_equal(data.samples.x, expected)
        full = load(name, {"path": str(square), "size": 24, **options})
        assert full.fingerprint == in_memory(full).fingerprint


def test_each_image_is_decoded_once_and_kept_within_the_budget(monkeypatch):
    monkeypatch.setenv("DRIFTLINE_IMAGE_CACHE", "650B")
    source = Counted()
    x = LazyRows.all_of(source)
    np.testing.assert_array_equal(x[:][:, 0, 0, 0], np.arange(10))
    np.testing.assert_array_equal(x[::-1][:, 0, 0, 0], np.arange(10)[::-1])
    assert sorted(source.decoded[10:]) == [6, 7, 8, 9]
    other = Counted()  # one budget for all
    np.testing.assert_array_equal(LazyRows.all_of(other)[[1, 1]][:, 0, 0, 0], [1, 1])
    LazyRows.all_of(other)[[1]]
    assert other.decoded == [1, 1, 1]


def test_originals_have_their_own_size_and_are_cached(tmp_path, monkeypatch):
    folder = write_images(tmp_path / "pets", 20)  # 24, 25 and 26 pixels wide
    x = load("image-folders", {"path": str(folder), "size": 16, "gray": True}).samples.x.take([2, 0, 2])
    read = originals(x)
    assert [image.shape for image in read] == [(24, 26, 1), (24, 24, 1), (24, 26, 1)]
    np.testing.assert_array_equal(read[1][..., 0], Image.open(folder / "ant" / "00000_2000.png").convert("L"))
    monkeypatch.setattr(Image, "open", lambda *_, **__: pytest.fail("read again"))
    np.testing.assert_array_equal(originals(x)[2], read[0])
    assert len(pickle.dumps(x)) < 5_000
    assert [image.shape for image in originals(np.zeros((2, 3, 4, 1), np.uint8))] == [(3, 4, 1)] * 2


def test_the_budget_is_a_number_of_bytes(monkeypatch):
    monkeypatch.setenv("DRIFTLINE_IMAGE_CACHE", "2MB")
    assert cache_limit() == 2_000_000
    monkeypatch.setenv("DRIFTLINE_IMAGE_CACHE", "much")
    with pytest.raises(UserError, match="DRIFTLINE_IMAGE_CACHE=much: give a number of bytes"):
        cache_limit()


def test_a_copy_in_another_process_has_no_images(tmp_path):
    x = load("image-folders", {"path": str(write_images(tmp_path / "pets", 20)), "size": 64}).samples.x
    before = len(pickle.dumps(x))
    pixels = x[:]
    assert len(pickle.dumps(x)) == before < 5_000
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(x)), pixels)


def test_a_fingerprint_covers_the_parts_of_an_image_that_only_random_crops_show(tmp_path):
    folder = write_images(tmp_path / "pets", 4)
    pixels = np.zeros((16, 32, 3), np.uint8)
    found = []
    for border in (0, 255):
        pixels[:, :4] = border
        Image.fromarray(pixels).save(folder / "ant" / "00000_2000.png")
        data = load("imagenet-val", {"path": str(folder), "size": 16})
        assert data.samples.x[0].max() == 0
        assert originals(data.samples.x)[0].max() == border
        found.append(data.fingerprint)
    assert found[0] != found[1]


def test_fingerprints_are_kept_until_a_file_changes(tmp_path, monkeypatch):
    folder = write_images(tmp_path / "pets", 20)
    monkeypatch.setattr("driftline.data.fingerprint_cache.folder", lambda: tmp_path / "kept")

    def loaded():
        return load("image-folders", {"path": str(folder), "size": 16})

    first = loaded().fingerprint
    with monkeypatch.context() as patched:
        patched.setattr(images, "read_image", lambda *_, **__: pytest.fail("decoded again"))
        patched.setattr(images.read_image, "__qualname__", "read_image", raising=False)
        assert loaded().fingerprint == first
    file = folder / "ant" / "00000_2000.png"
    Image.fromarray(np.zeros((24, 24, 3), np.uint8)).save(file)
    changed = loaded().fingerprint
    assert changed != first
    (entry, *_) = (tmp_path / "kept").iterdir()
    entry.write_bytes(b"\xff damaged")
    assert loaded().fingerprint in (first, changed)
    file.unlink()
    assert loaded().fingerprint not in (first, changed)


def test_memory_does_not_grow_with_the_number_of_pictures(tmp_path):
    """4,000 and 8,000 pictures, which take 110 and 221 MB decoded."""
    source = Path(__file__).parents[3] / "bench" / "images.py"
    spec = importlib.util.spec_from_file_location("bench_images", source)
    bench = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bench)
    peaks = []
    for numbers in (range(4_000), range(4_000, 8_000)):
        bench.write_pictures(tmp_path / "pictures", numbers)
        count, peak, *_ = bench.read(tmp_path / "pictures", 96, 64, "10MB", fingerprint=False)
        assert count == numbers.stop
        peaks.append(peak)
    assert peaks[1] < peaks[0] + 30


@pytest.mark.parametrize("benchmark", SPECS)
def test_runs_give_the_same_scores_as_on_images_in_memory(tmp_path, monkeypatch, benchmark):
    scores = {}
    for name, wrap in (("array", lambda x: x), ("lazy", LazyRows.all_of)):

        def loaded(*arguments, wrap=wrap, **settings):
            found = load(*arguments, **settings)
            return replace(found, samples=replace(found.samples, x=wrap(found.samples.x)))

        monkeypatch.setattr("driftline.data.load", loaded)
        scores[name] = driftline.run({"benchmark": benchmark, **SPECS[benchmark]}, runs=tmp_path / name).scores
    assert len(scores["lazy"]) >= len(SPECS[benchmark]["methods"])
    pd.testing.assert_frame_equal(scores["lazy"], scores["array"], check_exact=True)
