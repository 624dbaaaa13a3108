"""CLEAR: photographs of ten (or a hundred) things over the years 2004 to 2014, in buckets of time.

Lin et al., "The CLEAR Benchmark: Continual LEArning on Real-World Imagery", NeurIPS Datasets and Benchmarks 2021. Read
is the release with a folder `train` and one `test`, each with `class_names.txt`, a class per line, and
`labeled_metadata.json`, which names for each bucket and class a JSON file of photographs with their `IMG_PATH`. A time
is the number of a bucket.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from driftline.data import Dataset, file_errors, locate, locate_user_path
from driftline.data.formats import images
from driftline.data.formats.decoded_images import image_files
from driftline.data.source import published
from driftline.errors import UserError
from driftline.io import bounded_files
from driftline.registry import register
from driftline.tasks import Classification
from driftline.types import JsonObject, Samples

FOLDERS = ["clear10", "clear100", "CLEAR-10-PUBLIC", "clear"]
LISTS, CLASSES = "labeled_metadata.json", "class_names.txt"
ADVICE = (
    "Get clear10-train.zip and clear10-test.zip from clear-benchmark.github.io, and unpack both into a folder clear10"
)
Photograph = tuple[int, str, int, bool]
"""Its bucket, its file, its class, and whether it is of the test part."""


@register("dataset", "clear")
@published(
    size="11 buckets; 10 classes and background, or 100",
    license="Creative Commons, by photograph (YFCC100M)",
    where=ADVICE,
    files=[f"{folder}/train/{LISTS}" for folder in FOLDERS],
)
def clear(
    folders: Sequence[Path],
    *,
    path: str | None = None,  # folder with train and test; None: the first of a usual name in the data folders
    size: int = 64,  # height and width of the images in pixels
    published_split: bool = False,  # use the published test set
) -> Dataset:
    """Photographs in the order of their buckets, with the published test part or without it."""
    images.check_size(size)
    base = locate_user_path(folders, path, "clear", ADVICE) if path else locate(folders, FOLDERS, "clear", ADVICE)
    classes = _class_names(base / "train" / CLASSES)
    parts = [part for part in ("train", "test") if part == "train" or (base / part / LISTS).is_file()]
    found = sorted(photograph for part in parts for photograph in _photographs(base, part, classes))
    if not found:
        raise UserError(f"{base}: no photograph in {LISTS}. {ADVICE}")
    ids = np.array([name for _, name, _, _ in found])
    buckets = np.array([bucket for bucket, *_ in found], np.int64)
    samples = Samples(
        x=image_files(base, ids, partial(images.read_image, size=size), (size, size, 3)),
        y=np.array([label for _, _, label, _ in found], np.int64),
        id=ids,
        time=buckets,
    )
    test = np.array([is_test for *_, is_test in found])
    if published_split and (test.all() or not test.any()):
        raise UserError(f"{base} has no photographs of both train and test, so there is no published split")
    note = f"{len(ids):,} photographs of {len(classes)} classes in {len(set(buckets.tolist()))} buckets"
    task = Classification(tuple(classes))
    return Dataset("clear", samples, task, (note,), model="yearbook-cnn", test=test if published_split else None)


def _class_names(path: Path) -> list[str]:
    with file_errors(path, "a class in each line"), bounded_files.open_file(path) as file:
        names = file.read().decode().split("\n")
        return [name.strip() for name in names if name.strip()]


def _photographs(base: Path, part: str, classes: Sequence[str]) -> Iterator[Photograph]:
    lists = _read_json(base / part / LISTS, "for each bucket and class the name of a JSON file")
    for bucket, files in lists.items():
        for label, name in enumerate(classes):
            path = base / part / str(files[name]) if name in files else None
            listed = {} if path is None else _read_json(path, "photographs with their IMG_PATH")
            for photograph in listed.values():
                yield int(bucket), f"{part}/{photograph['IMG_PATH']}", label, part == "test"


def _read_json(path: Path, expected: str) -> JsonObject:
    with file_errors(path, expected), bounded_files.open_file(path) as file:
        content = json.load(file)
        if not isinstance(content, dict):
            raise ValueError(f"a {type(content).__name__}")
        return content
