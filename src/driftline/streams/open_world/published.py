"""NED's published sequences S1 to S5, by their label files and, where they exist, their image files.

github.com/RAIVNLab/FLUID: S3/all_labels3.npy has a class number per image, and S3/class_map3.npy the number of each
WordNet id; a class that the map lacks has its place in imagenet_classes.txt, which lists the classes of the upstream
model. S3/sequence3.npy names the images, such as n00004475_10006.JPEG; without it, images of each class are drawn. The
paper's loop begins with the last item, and so do these sequences. Its counts per class (imgs_per_class) are not those
of the labels in S3 and S4, and are not used.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np

from driftline.data import data_folders, file_errors, weights_file
from driftline.data.formats.safe_pickle import load_npy
from driftline.errors import UserError
from driftline.io import bounded_files
from driftline.io.user_files import resolve

CLASSES = "imagenet_classes.txt"
LAYOUT = f"expected NED's files {CLASSES}, S3/all_labels3.npy, S3/class_map3.npy and so on"
FILE_NAME = re.compile(r"(?:^|/)S(\d+)/(all_labels|class_map|sequence)\d*\.npy$")
CLASS_MAP = "a dict from WordNet ids to class numbers, as NED's files hold"
LABELS = "an array of class numbers, each of the class map or a place in imagenet_classes.txt"
IMAGES = "an array of image names such as n00004475_10006.JPEG"


@dataclass(frozen=True, eq=False)
class PublishedSequence:
    """The items of a sequence in the order of the paper's loop."""

    classes: np.ndarray
    """The WordNet id of each item."""
    images: np.ndarray | None = None
    """The name of each image, without folder and ending; None if only the labels are known."""


def expand_folder(stream: str) -> str | tuple[str, ...]:
    """Return the names of NED's files in a folder, or the name itself if it is not that of a folder.

    A folder is a path or a name in a data folder. Its files are then found and hashed like any that a user names.
    """
    bases = (resolve(stream), *(folder / stream for folder in data_folders()))
    base = next((base for base in bases if os.path.isdir(base)), None)
    if base is None:
        return stream
    found = [path.relative_to(base).as_posix() for path in sorted(base.glob("S*/*.npy"))]
    found = [name for name in found if FILE_NAME.search(name)]
    if not found or not (base / CLASSES).is_file():
        raise UserError(f"{stream} is a folder without published sequences: {LAYOUT}")
    return tuple(f"{stream.rstrip('/')}/{name}" for name in (CLASSES, *found))


def read_sequences(files: Sequence[str]) -> tuple[dict[int, PublishedSequence], list[str]]:
    """Return the sequences by number, and the WordNet ids that the upstream model was trained on."""
    parts: dict[int, dict[str, Path]] = {}
    for name in files:
        if found := FILE_NAME.search(name):
            parts.setdefault(int(found[1]), {})[found[2]] = _existing(name)
    listed = next((_existing(name) for name in files if PurePosixPath(name).name == CLASSES), None)
    if listed is None or not parts:
        raise UserError(f"{', '.join(files)}: {LAYOUT}")
    with file_errors(listed, "a WordNet id per line"), bounded_files.open_file(listed) as file:
        upstream = [line.decode().split()[0] for line in file if line.strip()]
    sequences = {number: _read_sequence(of, upstream) for number, of in parts.items()}
    for number, sequence in sequences.items():
        if not len(sequence.classes):
            raise UserError(f"{next(iter(parts[number].values())).parent}: the sequence S{number} lists no image")
    return sequences, upstream


def _existing(name: str) -> Path:
    path = weights_file(name)
    if path is None:
        raise UserError(f"there is no file {name}: {LAYOUT}")
    return path


def _read_sequence(files: Mapping[str, Path], upstream: Sequence[str]) -> PublishedSequence:
    if "sequence" in files:
        images = np.array([image_name(one) for one in load_npy(files["sequence"], IMAGES).ravel().tolist()])
        images = np.roll(images, 1)
        return PublishedSequence(np.array([name.partition("_")[0] for name in images]), images)
    if "all_labels" not in files or "class_map" not in files:
        raise UserError(f"{next(iter(files.values())).parent}: {LAYOUT}")
    names = dict(enumerate(upstream)) | _class_map(files["class_map"])
    with file_errors(files["all_labels"], LABELS):
        labels = load_npy(files["all_labels"], LABELS).ravel().tolist()
        return PublishedSequence(np.roll(np.array([names[label] for label in labels]), 1))


def _class_map(path: Path) -> dict[int, str]:
    """Return the WordNet id of each class number."""
    with file_errors(path, CLASS_MAP):
        content = load_npy(path, CLASS_MAP).item()
        return {int(number): str(name) for name, number in content.items()}


def image_name(path: object) -> str:
    """Return the name of an image without folder and ending.

    >>> image_name("data/S3/sequence3/n00004475_10006.JPEG")
    'n00004475_10006'
    """
    return str(path).rpartition("/")[2].partition(".")[0]
