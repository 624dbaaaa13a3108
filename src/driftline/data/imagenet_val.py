"""ImageNet's validation images: one folder per class, or one folder of images with their labels.

Russakovsky et al., "ImageNet Large Scale Visual Recognition Challenge", IJCV 2015. Published networks number their
outputs by the place of a class among the 1,000 sorted WordNet ids. Three layouts are read:

    a folder per class  A class is the place of its folder among those of `imagenet_classes.txt` (a WordNet id per line,
                        in the folder or beside it) or, without that file, among the folders that are there.
                        Folders with numbers, as ImageNet-V2 has them, are the places themselves.
    labels.csv          A row per image with the columns file and class_index and, if known, wnid or name.
    as published        ILSVRC2012_val_*.JPEG, with ILSVRC2012_validation_ground_truth.txt and meta.mat of the
                        development kit (`ILSVRC2012_devkit_t12/data`) in the folder or beside it.

Images are decoded when they are needed, as torchvision does for evaluation: the short side is resized to `resize`
pixels, by default `size`, and the center of `size` pixels is cut out. `per_class` takes only the first ones of each
class.
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
from driftline.data.source import published
from driftline.errors import UserError
from driftline.io import bounded_files
from driftline.registry import register
from driftline.tasks import Classification
from driftline.types import Samples

FOLDERS = ["imagenet-val", "imagenet_val1000_256px"]
LABELS = "labels.csv"
CLASS_LIST = "imagenet_classes.txt"
TRUTH, SYNSETS = "ILSVRC2012_validation_ground_truth.txt", "meta.mat"
KIT = "ILSVRC2012_devkit_t12/data"
MAX_SYNSETS_BYTES = 2**20  # of a file of 1,860 names; it may be compressed
SUFFIXES = (".jpg", ".jpeg", ".png")
ADVICE = (
    "Put a folder with a folder per class there, or one with the images and a labels.csv (file,class_index,wnid) or "
    f"{TRUTH} and {SYNSETS} of the development kit"
)
Listed = tuple[list[str], list[int], tuple[str, ...]]  # the images, their classes, the names of all classes


@register("dataset", "imagenet-val")
@published(
    size="50,000 images of 1,000 classes",
    license="ImageNet terms: non-commercial research",
    where=ADVICE,
    files=FOLDERS,
)
def imagenet_val(
    folders: Sequence[Path],
    *,
    path: str | None = None,  # folder of the images; None: the first of a usual name in the data folders
    size: int = 256,  # height and width of the images in pixels
    resize: int | None = None,  # resize the short side to this and cut out the center
    per_class: int | None = None,  # maximum number of images of a class
) -> Dataset:
    """The images of the folder `path`, or of the first folder of a usual name; an id is the file as listed."""
    folder = (
        locate_user_path(folders, path, "imagenet-val", ADVICE)
        if path
        else locate(folders, FOLDERS, "imagenet-val", ADVICE)
    )
    if not folder.is_dir():
        raise UserError(f"dataset 'imagenet-val': there is no folder {folder}. {ADVICE}")
    files, labels, classes = _listed(folder)
    kept = _first(labels, per_class)
    if not kept:
        raise UserError(f"dataset 'imagenet-val': no image in {folder}. {ADVICE}")
    pictures.check_size(size)
    pictures.check_resize(size, resize)
    ids = np.array(files)[kept]
    x = image_files(folder, ids, partial(pictures.read_center, size=size, resize=resize), (size, size, 3))
    samples = Samples(x=x, y=np.array(labels, np.int64)[kept], id=ids, time=np.zeros(len(kept), np.int64))
    present = len(set(samples.y.tolist()))
    note = f"{len(kept):,} images of {present:,} classes, the center at {size} x {size} pixels"
    return Dataset("imagenet-val", samples, Classification(classes), (note,), model="resnet50")


def _listed(folder: Path) -> Listed:
    """Return what a folder holds, by its layout."""
    if (folder / LABELS).exists():
        return _from_table(folder)
    truth = _beside(folder, TRUTH)
    return _from_folders(folder) if truth is None else _from_ground_truth(folder, truth)


def _beside(folder: Path, name: str) -> Path | None:
    """Return a file of a folder or of its parent, perhaps in the development kit."""
    places = (place / inside for place in (folder, folder.parent) for inside in (name, f"{KIT}/{name}"))
    return next((path for path in places if path.is_file()), None)


def _images(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir() if file.suffix.lower() in SUFFIXES)


def _from_folders(folder: Path) -> Listed:
    found = [path.name for path in folder.iterdir() if path.is_dir()]
    by_number = all(name.isdecimal() for name in found)  # ImageNet-V2's, which sorted as texts would be mixed up
    inside = sorted(found, key=int) if by_number else sorted(found)
    if len(inside) < 2:
        raise UserError(f"{folder}: expected a folder per class or a {LABELS}, but found {len(inside)} folder(s)")
    classes, class_list = inside, _beside(folder, CLASS_LIST)
    if class_list is not None:
        with file_errors(class_list, "a WordNet id per line"), bounded_files.open_file(class_list) as content:
            classes = sorted(content.read().decode().split())
            if by_number and len(classes) <= int(inside[-1]):
                raise ValueError(f"{len(classes)} lines, but a folder {inside[-1]}")
            if not by_number and (others := set(inside) - set(classes)):
                raise ValueError(f"no line for the folder {min(others)}")
    elif by_number:
        classes = list(numbered_names([int(name) for name in inside]))
    files, labels = [], []
    for name in inside:
        images = _images(folder / name)
        files += [f"{name}/{image}" for image in images]
        labels += [int(name) if by_number else classes.index(name)] * len(images)
    return files, labels, tuple(classes)


def _from_ground_truth(folder: Path, truth: Path) -> Listed:
    """Number the images of one folder by the development kit, whose own numbers of classes are in another order."""
    from scipy.io import loadmat

    synsets = truth.with_name(SYNSETS)
    with file_errors(synsets, "the development kit's synsets"):
        bounded_files.check_size(synsets.stat().st_size, MAX_SYNSETS_BYTES)
        rows = loadmat(synsets, squeeze_me=True)["synsets"]
        wnids = {int(row[0]): str(row[1]) for row in rows if int(row[4]) == 0}  # without children: a class, not a group
    classes, files = sorted(wnids.values()), _images(folder)
    index = {wnid: k for k, wnid in enumerate(classes)}
    with file_errors(truth, "a number of a class per image"), bounded_files.open_file(truth) as content:
        labels = [index[wnids[int(line)]] for line in content.read().split()]
        if len(labels) != len(files):
            raise ValueError(f"{len(labels)} lines, but {len(files)} images in {folder}")
    return files, labels, tuple(classes)


def _from_table(folder: Path) -> Listed:
    table = folder / LABELS
    with file_errors(table, "a CSV file with the columns file and class_index"):
        with bounded_files.open_file(table) as content:
            frame = pd.read_csv(content).sort_values("file", kind="stable")
        labels = [int(label) for label in frame["class_index"]]
        if labels != frame["class_index"].tolist():
            raise ValueError("a class_index that is not a whole number")
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
