"""ImageNet's validation images: one folder per class, or one folder of images with a table of labels.

Russakovsky et al., "ImageNet Large Scale Visual Recognition Challenge", IJCV 2015. In the first layout a class is the
place of its folder among all of them in sorted order, which is how published networks number their outputs if all
1,000 folders are there. In the second `labels.csv` has a row per image with the columns file and class_index and, if
known, wnid or name. Images are brought to `size` pixels when they are needed: the short side is resized to it and the
center cut out. `per_class` takes only the first ones of each class.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from driftline.data import Dataset, file_errors, locate, locate_user_path, numbered_names
from driftline.data.formats import images as pictures
from driftline.data.formats.decoded_images import image_files
from driftline.errors import UserError
from driftline.io import bounded_files
from driftline.registry import register
from driftline.tasks import Classification
from driftline.types import Samples

FOLDERS = ["imagenet-val", "imagenet_val1000_256px"]
LABELS = "labels.csv"
SUFFIXES = (".jpg", ".jpeg", ".png")
ADVICE = "Put a folder with a folder per class there, or one with the images and a labels.csv (file,class_index,wnid)"
Listed = tuple[list[str], list[int], tuple[str, ...]]  # the images, their classes, the names of all classes


@register("dataset", "imagenet-val")
def imagenet_val(
    folders: Sequence[Path], *, path: str | None = None, size: int = 256, per_class: int | None = None
) -> Dataset:
    """The images of the folder `path`, or of the first folder of a usual name; an id is the file as listed."""
    folder = (
        locate_user_path(folders, path, "imagenet-val", ADVICE)
        if path
        else locate(folders, FOLDERS, "imagenet-val", ADVICE)
    )
    if not folder.is_dir():
        raise UserError(f"dataset 'imagenet-val': there is no folder {folder}. {ADVICE}")
    files, labels, classes = _from_table(folder) if (folder / LABELS).exists() else _from_folders(folder)
    kept = _first(labels, per_class)
    if not kept:
        raise UserError(f"dataset 'imagenet-val': no image in {folder}. {ADVICE}")
    pictures.check_size(size)
    ids = np.array(files)[kept]
    x = image_files(folder, ids, partial(pictures.read_center, size=size), (size, size, 3))
    samples = Samples(x=x, y=np.array(labels, np.int64)[kept], id=ids, time=np.zeros(len(kept), np.int64))
    present = len(set(samples.y.tolist()))
    note = f"{len(kept):,} images of {present:,} classes, the center at {size} x {size} pixels"
    return Dataset("imagenet-val", samples, Classification(classes), (note,), model="resnet50")


def _from_folders(folder: Path) -> Listed:
    inside = sorted(path.name for path in folder.iterdir() if path.is_dir())
    if len(inside) < 2:
        raise UserError(f"{folder}: expected a folder per class or a {LABELS}, but found {len(inside)} folder(s)")
    files, labels = [], []
    for k, name in enumerate(inside):
        images = sorted(file.name for file in (folder / name).iterdir() if file.suffix.lower() in SUFFIXES)
        files += [f"{name}/{image}" for image in images]
        labels += [k] * len(images)
    return files, labels, tuple(inside)


def _from_table(folder: Path) -> Listed:
    table = folder / LABELS
    with file_errors(table, "a CSV file with the columns file and class_index"):
        with bounded_files.open_file(table) as content:
            frame = pd.read_csv(content).sort_values("file", kind="stable")
        labels = [int(label) for label in frame["class_index"]]
        names = list(numbered_names(labels))
        column = next((column for column in ("wnid", "name") if column in frame), "class_index")
        for label, name in zip(labels, frame[column], strict=True):
            names[label] = str(name)
        return [str(name) for name in frame["file"]], labels, tuple(names)


def _first(labels: list[int], per_class: int | None) -> list[int]:
    """Return the positions of the first images of each class, in their order."""
    seen: dict[int, int] = {}
    kept = []
    for place, label in enumerate(labels):
        seen[label] = seen.get(label, 0) + 1
        if per_class is None or seen[label] <= per_class:
            kept.append(place)
    return kept
