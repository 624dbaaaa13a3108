"""CIFAR-10 and CIFAR-100: 60,000 photographs of 32 x 32 pixels in 10 or 100 classes, without a time.

Krizhevsky, "Learning Multiple Layers of Features from Tiny Images", 2009. Read are the standard Python batches. The
order is the official one, 50,000 training images and then 10,000 test images, and an id is the place in it. The 100
classes of CIFAR-100 are the sub-classes of 20 coarse ones. The order in which they enter the world is that of Ji et
al., "Seq-to-Final", of which the first two are there from the start.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from driftline.data import Dataset, file_errors, locate
from driftline.data.formats import safe_pickle
from driftline.data.source import NOT_STATED, published
from driftline.errors import UserError, unknown_name
from driftline.registry import register
from driftline.tasks import Classification
from driftline.types import Samples

SHAPE = (3, 32, 32)
IMAGES = 60_000
CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
FINE_CLASSES_BY_COARSE = (
    "otter seal beaver dolphin whale",
    "flatfish trout aquarium_fish ray shark",
    "poppy tulip rose orchid sunflower",
    "bottle cup can bowl plate",
    "apple pear orange sweet_pepper mushroom",
    "clock lamp telephone television keyboard",
    "chair couch bed table wardrobe",
    "beetle cockroach bee butterfly caterpillar",
    "leopard tiger lion bear wolf",
    "road bridge house castle skyscraper",
    "plain forest mountain cloud sea",
    "camel cattle chimpanzee kangaroo elephant",
    "skunk possum raccoon porcupine fox",
    "crab lobster spider snail worm",
    "man woman boy girl baby",
    "lizard snake turtle crocodile dinosaur",
    "mouse shrew hamster rabbit squirrel",
    "oak_tree pine_tree maple_tree willow_tree palm_tree",
    "bicycle motorcycle pickup_truck bus train",
    "streetcar tractor tank lawn_mower rocket",
)
"""For each of the 20 coarse classes, in official order, its five fine ones in the order in which they enter."""
ADVICE = "Get {} from https://www.cs.toronto.edu/~kriz/cifar.html, unpack it, and put the folder there"


@register("dataset", "cifar10")
@published(
    size="60,000 images of 32 x 32 pixels, 10 classes",
    license=NOT_STATED,
    where=ADVICE.format("cifar-10-python.tar.gz"),
    files=("cifar-10-batches-py",),
)
def cifar10(folders: Sequence[Path]) -> Dataset:
    """CIFAR-10 with its official test set."""
    folder = locate(folders, ["cifar-10-batches-py"], "cifar10", ADVICE.format("cifar-10-python.tar.gz"))
    train = [_batch(folder / f"data_batch_{k}", ("labels",), len(CLASSES)) for k in range(1, 6)]
    test = _batch(folder / "test_batch", ("labels",), len(CLASSES))
    x, y = (np.concatenate([part[k] for part in (*train, test)]) for k in (0, 1))
    samples, mask = _samples(x, y, len(test[0]))
    return Dataset("cifar10", samples, Classification(CLASSES), (_note(mask),), model="conv-2", test=mask)


@register("dataset", "cifar100")
@published(
    size="60,000 images of 32 x 32 pixels, 100 classes",
    license=NOT_STATED,
    where=ADVICE.format("cifar-100-python.tar.gz"),
    files=("cifar-100-python", "cifar-100-python-subset"),
)
def cifar100(
    folders: Sequence[Path],
    *,
    labels: str = "coarse",  # coarse: 20 classes with 5 sub-classes each; fine: 100 classes
) -> Dataset:
    """CIFAR-100 with its official test set; `labels` is coarse (20 classes with 5 sub-classes each) or fine (100)."""
    if labels not in ("coarse", "fine"):
        raise unknown_name("kind of labels of cifar100", labels, ("coarse", "fine"))
    names = ["cifar-100-python", "cifar-100-python-subset"]
    folder = locate(folders, names, "cifar100", ADVICE.format("cifar-100-python.tar.gz"))
    meta = safe_pickle.load_pickle(folder / "meta", "the names of CIFAR-100's classes")
    with file_errors(folder / "meta", "the names of CIFAR-100's classes"):
        coarse, fine = ([str(name) for name in meta[f"{kind}_label_names"]] for kind in ("coarse", "fine"))
        order = tuple(tuple(fine.index(name) for name in line.split()) for line in FINE_CLASSES_BY_COARSE)
    train, test = (_batch(folder / part, ("coarse_labels", "fine_labels"), len(fine)) for part in ("train", "test"))
    x, y, group = (np.concatenate([train[k], test[k]]) for k in (0, 1, 2))
    for k, listed in enumerate(order):
        if not np.isin(group[y == k], listed).all():
            raise UserError(
                f"{folder}: expected CIFAR-100, but found images of {coarse[k]} that are none of "
                f"{FINE_CLASSES_BY_COARSE[k]}"
            )
    samples, mask = _samples(x, y if labels == "coarse" else group, len(test[0]), group)
    task = Classification(tuple(coarse if labels == "coarse" else fine))
    subclasses = order if labels == "coarse" else None
    return Dataset("cifar100", samples, task, (_note(mask),), model="conv-2", test=mask, subclasses=subclasses)


def _batch(path: Path, labels: tuple[str, ...], classes: int) -> tuple[np.ndarray, ...]:
    """Return the images of a file as bytes of shape (n, 32, 32, 3), and its labels of each kind."""
    expected = "a batch of CIFAR images"
    content = safe_pickle.load_pickle(path, expected)
    with file_errors(path, expected):
        pixels = np.asarray(content["data"])
        if pixels.dtype != np.uint8 or pixels.ndim != 2:
            raise ValueError(f"pixels of type {pixels.dtype} and shape {pixels.shape}")
        images = np.ascontiguousarray(pixels.reshape(-1, *SHAPE).transpose(0, 2, 3, 1))
        columns = [np.asarray(content[kind]) for kind in labels]
        for column in columns:
            if column.shape != (len(images),):
                raise ValueError(f"{len(images)} images but labels of shape {column.shape}")
            if column.dtype.kind not in "iu" or column.min() < 0 or column.max() >= classes:
                raise ValueError(f"labels that are not all whole numbers from 0 to {classes - 1}")
    return images, *(column.astype(np.int64) for column in columns)


def _samples(x: np.ndarray, y: np.ndarray, tests: int, group: np.ndarray | None = None) -> tuple[Samples, np.ndarray]:
    """Return all images with time 0, and a mask of the test set, which comes last."""
    n = len(y)
    return Samples(x=x, y=y, time=np.zeros(n, np.int64), group=group), np.arange(n) >= n - tests


def _note(test: np.ndarray) -> str:
    part = "" if len(test) == IMAGES else f"; this is a part of the {IMAGES:,} images"
    return f"{int((~test).sum()):,} training and {int(test.sum()):,} test images in the official order{part}"
