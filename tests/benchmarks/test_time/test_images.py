"""test-time: which part of an image is shown, and published images read from their files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import driftline
from driftline.benchmarks.test_time.benchmark import Options, TestTime
from driftline.corruptions import corrupt, cropping
from driftline.data import load
from driftline.engine.build import build_model
from driftline.errors import UserError
from driftline.report.tables.papers import paper_tables as table
from driftline.seeds import Seed
from driftline.spec import parse
from driftline.streams.test_time.schedule import CORRUPTIONS_3D
from driftline.types import Samples

CLASSES = ("n01440764", "n01443537", "n01484850")


@pytest.fixture(scope="module")
def photographs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """ImageNet's validation images in the small: a folder per class, images of several sizes."""
    image = pytest.importorskip("PIL.Image")
    folder, rng = tmp_path_factory.mktemp("imagenet") / "val", np.random.default_rng(0)
    for k, name in enumerate(CLASSES):
        (folder / name).mkdir(parents=True)
        for n, shape in enumerate([(300, 280), (256, 400)]):
            coarse = rng.integers(0, 200, (*(side // 20 for side in shape), 3), dtype=np.uint8)
            image.fromarray(coarse).resize(shape[::-1]).save(folder / name / f"ILSVRC2012_val_{2 * k + n:08d}.JPEG")
    return folder


def shown(photographs: Path, **options: Any) -> Samples:
    dataset = load("imagenet-val", {"path": str(photographs)})
    given = {
        "images": 6,
        "batch": 6,
        "images_per_point": 6,
        "corruptions": "contrast",
        "upstream_updates": 0,
        **options,
    }
    layout = TestTime().build_scenario(dataset, Options(**given), Seed(0))
    return layout.stream[0].samples


@pytest.mark.parametrize("order", ["cin-c", "holdout", "gradual", "mixed"])
@pytest.mark.parametrize("crop", [{}, {"crop": False}])
def test_images_are_resized_to_256_and_cut_to_the_centre_of_224(photographs: Path, order: str, crop: Any) -> None:
    """Straight from the files, without the reader that brings them to 256 pixels first."""
    pytest.importorskip("cv2")
    samples = shown(photographs, order=order, **crop)
    severity = 1.0 if order == "gradual" else 5.0
    files = sorted(photographs.rglob("*.JPEG"))
    plain = np.stack([cropping.center_crop(cropping.decode_image(file)) for file in files])
    expected = corrupt(plain, "contrast", severity, np.zeros(6, np.uint64))  # contrast draws nothing
    assert samples.x.shape == (6, 224, 224, 3)
    assert sorted(x.tobytes() for x in samples.x) == sorted(x.tobytes() for x in expected)


ONE_SIZE = """
from torch import nn


def make(shape, outputs):
    network = nn.Sequential(nn.AvgPool2d(112), nn.Flatten(), nn.Linear(12, outputs))
    network.pretrained, network.built_for = True, shape
    return network
"""


def test_a_network_for_one_size_is_built_for_what_is_shown(photographs: Path, tmp_path: Path) -> None:
    """The dataset has 256 pixels, and the stream shows 224 of them."""
    pytest.importorskip("cv2")
    (tmp_path / "mine.py").write_text(ONE_SIZE)
    spec = {"benchmark": "test-time", "data": {"name": "imagenet-val", "path": str(photographs)}, "methods": "frozen"}
    options = {
        "order": "cin-c",
        "corruptions": "contrast",
        "images": 6,
        "images_per_point": 6,
        "batch": 6,
        "upstream_updates": 0,
    }
    job = {**spec, "model": f"{tmp_path}/mine.py:make", "test-time": options}
    (run,) = driftline.run(job, runs=tmp_path / "runs").runs
    assert len(run.table("answers")) == 6
    dataset = load("imagenet-val", {"path": str(photographs)})
    assert build_model(parse(job).jobs("")[0], dataset).built_for == (224, 224, 3)


def test_crop_true_shows_random_parts(photographs: Path) -> None:
    pytest.importorskip("cv2")
    parts, centres = (shown(photographs, order="cin-c", crop=crop).x for crop in (True, False))
    assert parts.shape == centres.shape
    assert (parts != centres).any(axis=(1, 2, 3)).all()
    assert Options(order="ccc").random_parts is None  # ccc: random parts of images from 64 pixels on
    assert Options(order="ccc", crop=False).random_parts is False


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Small images of two classes with a training part, and published corruptions of them: a grey level for each."""
    image = pytest.importorskip("PIL.Image")
    base = tmp_path_factory.mktemp("published")
    rng = np.random.default_rng(0)

    def write(file: Path, level: int, noise: int = 30) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        image.fromarray((level + rng.integers(0, noise, (32, 32, 3))).astype(np.uint8)).save(file)

    for k, name in enumerate(CLASSES[:2]):
        for n in range(16):
            write(base / "imagenet" / "train" / name / f"{n}.png", 30 + 150 * k)
        for n in range(2):
            write(base / "imagenet" / "val" / name / f"{n}.png", 30 + 150 * k)
        for c, corruption in enumerate((*CORRUPTIONS_3D, "elastic_transform")):
            for n in range(4):
                write(base / "3dcc" / corruption / "5" / name / f"{n}.JPEG", 15 * c + 8 * n, 1)
    return base / "imagenet", base / "3dcc"


def layout(published: tuple[Path, Path], seed: int = 0, **options: Any) -> Any:
    dataset = load("image-folders", {"path": str(published[0]), "size": 32})
    given = {
        "order": "cin-3dcc",
        "files": str(published[1]),
        "images": 96,
        "batch": 7,
        "images_per_point": 8,
        **options,
    }
    return TestTime().build_scenario(dataset, Options(**given), Seed(seed))


def test_cin_3dcc_shows_every_published_image_once_with_its_class(published: tuple[Path, Path]) -> None:
    laid = layout(published)
    samples = Samples.concat([laid.stream[k].samples for k in range(len(laid.stream))])
    assert samples.x.shape == (96, 32, 32, 3)
    for point, corruption in enumerate(laid.protocol["schedule"]["order"]):
        files = sorted((published[1] / corruption / "5").rglob("*.JPEG"))
        expected = [(cropping.decode_image(file).tobytes(), CLASSES.index(file.parent.name)) for file in files]
        here = samples.group == point
        seen = [(x.tobytes(), int(y)) for x, y in zip(samples.x[here], samples.y[here], strict=True)]
        assert sorted(seen) == sorted(expected)


def test_orders_of_published_images_are_drawn_for_the_seed(published: tuple[Path, Path]) -> None:
    orders = [layout(published, seed).protocol["schedule"]["order"] for seed in (0, 0, 1)]
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0]) == sorted(orders[2]) == sorted(CORRUPTIONS_3D)


def test_files_of_imagenet_c_are_read_by_the_names_of_their_folders(published: tuple[Path, Path]) -> None:
    stream = layout(published, order="cin-c", corruptions="elastic", images=8, batch=8).stream
    assert {int(image[0, 0, 0]) // 8 for image in stream[0].samples.x} <= set(range(22, 27))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"files": None}, "give their folder with --files FOLDER"),
        ({"files": "nowhere"}, "there is no folder nowhere"),
        ({"severity": 4}, "near_focus/4|/4: expected a folder per corruption"),
        ({"severity": 4.5}, "severity=4.5: published images have a whole number"),
        ({"corruptions": "fog"}, "fog"),
        ({"jpeg": 85}, "jpeg=85: published images are shown as they are"),
        ({"order": "gradual"}, "order=gradual makes its images"),
        ({"order": "cin-c"}, "there is no folder .*: expected a folder per corruption"),
    ],
)
def test_what_does_not_go_with_files_is_refused(published: tuple[Path, Path], options: Any, words: str) -> None:
    with pytest.raises(UserError, match=words):
        layout(published, **options)


def test_a_class_that_the_data_lack_is_refused(published: tuple[Path, Path], tmp_path: Path) -> None:
    strange = tmp_path / "flash" / "5" / "n99999999"
    strange.mkdir(parents=True)
    with pytest.raises(UserError, match="n99999999"):
        layout(published, files=str(tmp_path), corruptions="flash")


def test_cin_3dcc_from_end_to_end(published: tuple[Path, Path], tmp_path: Path) -> None:
    spec = {
        "benchmark": "test-time",
        "data": {"name": "image-folders", "path": str(published[0]), "size": 32},
        "model": {"name": "conv-1", "width": 4},
        "methods": ["frozen", "bn"],
        "test-time": {
            **{
                "order": "cin-3dcc",
                "files": str(published[1]),
                "images": 96,
                "batch": 8,
                "images_per_point": 8,
                "resamples": 10,
            },
            **{"upstream_updates": 5},
        },
    }
    record = driftline.run(spec, runs=tmp_path)
    grid = table(record, "test-time/table-1")[0]
    assert [column.name for column in grid.columns] == ["cin-3dcc"]
    assert [line.title for line in grid.rows] == ["frozen", "bn"]  # class folders may be anybody's: nothing printed
    for run in record.runs:
        assert sorted(run.card.protocol["schedule"]["order"]) == sorted(CORRUPTIONS_3D)


def test_arrays_of_cifar_10_c_are_mapped_and_read_by_severity(published: tuple[Path, Path], tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (5 * 6, 32, 32, 3), dtype=np.uint8)
    labels = np.tile([0, 1, 1, 0, 1, 0], 5).astype(np.uint8)
    np.save(tmp_path / "jpeg_compression.npy", pixels)
    np.save(tmp_path / "labels.npy", labels)
    given = {
        "order": "cin-c",
        "corruptions": "jpeg",
        "severity": 2,
        "files": str(tmp_path),
        "images": 6,
        "images_per_point": 6,
    }
    stream = layout(published, **given, batch=6).stream
    assert isinstance(stream.stream.images[0].x.source, np.memmap)
    shown, places = stream[0].samples, [image.tobytes() for image in pixels]
    rows = [places.index(image.tobytes()) for image in shown.x]
    assert sorted(rows) == list(range(6, 12))
    assert shown.y.tolist() == labels[rows].tolist()
    for labels, words in ((np.arange(30), "values from 0 to 29"), (np.zeros(29, int), "shape .29,.")):
        np.save(tmp_path / "labels.npy", labels)
        with pytest.raises(UserError, match=rf"labels\.npy: expected the classes of the 30 images .*{words}"):
            layout(published, **given)
    np.save(tmp_path / "jpeg_compression.npy", pixels[:29])
    with pytest.raises(UserError, match=r"jpeg_compression\.npy: expected an array of byte images"):
        layout(published, **given)
    with pytest.raises(UserError, match=r"fog\.npy"):
        layout(published, **{**given, "corruptions": "fog"})
