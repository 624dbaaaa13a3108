"""Images in one folder per class, such as ImageNet's, without a time.

The class folders are under `train` and `val` (or `test`), and then the latter is the official test set; or they are in
the folder itself, and there is none. Or the names of the pictures say their class. Dated pictures are read by the
dataset `dated-images`.

Pictures are squeezed to a square. With `resize` they are treated as in torchvision's evaluation: the short side is
resized to this number of pixels and the center is cropped; EXIF rotation is not applied. ImageNet's networks are
evaluated with `resize: 256` and `size: 224`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Literal

import numpy as np

from driftline.data import Dataset, locate_user_path
from driftline.data.dated_images import SUFFIXES
from driftline.data.formats import images
from driftline.data.formats.decoded_images import image_files
from driftline.data.formats.mapped_names import mapped_names
from driftline.errors import UserError
from driftline.registry import register
from driftline.tasks import Classification
from driftline.types import Samples

ENDINGS = tuple(SUFFIXES)
TEST_FOLDERS = ("val", "test")  # ImageNet's test set has no labels, so `val` is taken if both are there


@register("dataset", "image-folders")
def image_folders(
    folders: Sequence[Path],
    *,
    path: str,  # folder with a folder of images per class
    size: int = 64,  # height and width of the images in pixels
    resize: int | None = None,  # resize the short side to this and cut out the center; None: squeeze to a square
    gray: bool = False,  # convert images to gray
    classes_by: Literal["folder", "name"] = "folder",  # class by folder, or by the start of a name: n01440764_10026
) -> Dataset:
    """The pictures under `path`, squeezed to a square of `size` pixels when needed; an id is the file's name."""
    base = locate_user_path(folders, path, "image-folders")
    if not base.is_dir():
        raise UserError(f"dataset 'image-folders': {base} is a file, not a folder of class folders")
    images.check_size(size)
    images.check_resize(size, resize)
    classes, ids, counts = _by_name(base) if classes_by == "name" else _by_folder(base)
    y = np.repeat(np.arange(len(counts)) % len(classes), counts)
    shape = (size, size, 1 if gray else 3)
    read = (
        partial(images.read_image, size=size, gray=gray)
        if resize is None
        else partial(images.read_center, size=size, resize=resize, gray=gray)
    )
    x = image_files(base, ids, read, shape)
    samples = Samples(x=x, y=y, id=ids, time=np.zeros(len(y), np.int64))
    n_train = sum(counts[: len(classes)])
    test = np.arange(len(y)) >= n_train if n_train < len(y) else None
    notes = (f"{len(y):,} pictures of {base.name} in {len(classes)} classes, brought to {size} x {size} pixels",)
    return Dataset("image-folders", samples, Classification(tuple(classes)), notes, model="conv-2", test=test)


def _by_folder(base: Path) -> tuple[list[str], np.ndarray, list[int]]:
    """Return the classes, all pictures, and how many each class has in the training part, then in the test part."""
    parts = _parts(base)
    by_part = [
        sorted(folder.name for folder in part.iterdir() if folder.is_dir() and folder.name[0] != ".") for part in parts
    ]
    classes = by_part[0]
    if len(classes) < 2:
        raise UserError(f"{parts[0]}: expected a folder for each of two classes or more, but found {len(classes)}")
    for part, found in zip(parts, by_part, strict=True):
        if others := set(found) - set(classes):
            raise UserError(f"{part} has a class '{min(others)}' that the training part lacks")
    places = [part / name for part in parts for name in classes]
    ids, counts = mapped_names(_pictures(place, f"{place.relative_to(base).as_posix()}/") for place in places)
    if 0 in counts:
        empty = places[counts.index(0)]
        raise UserError(f"{empty.parent} has no picture of the class '{empty.name}'")
    return classes, ids, counts


def _by_name(base: Path) -> tuple[list[str], np.ndarray, list[int]]:
    """Return the classes that names of pictures begin with, all pictures, and how many each class has."""
    by_class: dict[str, list[str]] = {}
    for name in _pictures(base):
        start, separator, _ = PurePosixPath(name).name.partition("_")
        if not separator:
            raise UserError(f"{base}: expected names such as CLASS_NUMBER.jpg, but found {name}")
        by_class.setdefault(start, []).append(name)
    if len(by_class) < 2:
        raise UserError(f"{base}: expected names such as CLASS_NUMBER.jpg of two classes, but found {len(by_class)}")
    classes = sorted(by_class)
    return classes, *mapped_names(by_class[name] for name in classes)


def _parts(base: Path) -> list[Path]:
    """Return the folders that hold class folders: training and test, or the folder itself."""
    if not (base / "train").is_dir():
        return [base]
    tests = [base / name for name in TEST_FOLDERS if (base / name).is_dir()]
    return [base / "train", *tests[:1]]


def _pictures(folder: Path, start: str = "") -> Iterator[str]:
    """Yield the names of the pictures in a folder after `start`, sorted by folder and name."""
    if not folder.is_dir():
        return
    with os.scandir(folder) as found:
        entries = sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in found)
    for name, is_folder in entries:
        if is_folder:
            yield from _pictures(folder / name, f"{start}{name}/")
        elif name[0] != "." and name.lower().endswith(ENDINGS):
            yield start + name
