"""Pictures sorted into one folder per class, as ImageNet's are, without a time.

The class folders are under `train` and `val` (or `test`), and then the latter is the official test set; or they are in
the folder itself, and there is none. Dated pictures are read by the dataset `dated-images`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from driftline.data import Dataset, locate_user_path
from driftline.data.dated_images import SUFFIXES
from driftline.data.formats import images
from driftline.errors import UserError
from driftline.registry import register
from driftline.tasks import Classification
from driftline.types import Samples

TEST_FOLDERS = ("val", "test")  # ImageNet's test set has no labels, so `val` is taken if both are there


@register("dataset", "image-folders")
def image_folders(folders: Sequence[Path], *, path: str, size: int = 64, gray: bool = False) -> Dataset:
    """The pictures under `path`, squeezed to a square of `size` pixels and held in memory; an id is the file's name."""
    base = locate_user_path(folders, path, "image-folders")
    if not base.is_dir():
        raise UserError(f"dataset 'image-folders': {base} is a file, not a folder of class folders")
    parts = _parts(base)
    classes = sorted(folder.name for folder in parts[0].iterdir() if folder.is_dir() and folder.name[0] != ".")
    if len(classes) < 2:
        raise UserError(f"{parts[0]}: expected a folder for each of two classes or more, but found {len(classes)}")
    files = [[(file, k) for k, name in enumerate(classes) for file in _pictures(part / name)] for part in parts]
    listed = [row for rows in files for row in rows]
    for part, rows in zip(parts, files, strict=True):
        _check_gaps(part, classes, rows)
    x = images.allocate(len(listed), size, 1 if gray else 3)
    for i, (file, _) in enumerate(listed):
        x[i] = images.read_image(file, size, gray)
    samples = Samples(
        x=x,
        y=np.array([k for _, k in listed], np.int64),
        id=np.array([file.relative_to(base).as_posix() for file, _ in listed]),
        time=np.zeros(len(listed), np.int64),
    )
    test = np.arange(len(listed)) >= len(files[0]) if len(parts) == 2 else None
    notes = (f"{len(listed):,} pictures of {base.name} in {len(classes)} classes, brought to {size} x {size} pixels",)
    return Dataset("image-folders", samples, Classification(tuple(classes)), notes, model="conv-2", test=test)


def _parts(base: Path) -> list[Path]:
    """Return the folders that hold class folders: training and test, or the folder itself."""
    if not (base / "train").is_dir():
        return [base]
    tests = [base / name for name in TEST_FOLDERS if (base / name).is_dir()]
    return [base / "train", *tests[:1]]


def _pictures(folder: Path) -> list[Path]:
    found = folder.rglob("*") if folder.is_dir() else []
    return sorted(file for file in found if file.suffix.lower() in SUFFIXES and not file.name.startswith("."))


def _check_gaps(part: Path, classes: list[str], rows: list[tuple[Path, int]]) -> None:
    there = {k for _, k in rows}
    for k, name in enumerate(classes):
        if k not in there:
            raise UserError(f"{part} has no picture of the class '{name}'")
    others = {folder.name for folder in part.iterdir() if folder.is_dir() and folder.name[0] != "."} - set(classes)
    if others:
        raise UserError(f"{part} has a class '{min(others)}' that the training part lacks")
