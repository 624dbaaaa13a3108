"""Images in tar files, a few entries per image: the layout of WebDataset, in which CCC is distributed too.

Entries of one image follow each other and share their name up to the first dot: `train/0001.jpg` (or `.jpeg`, `.png`)
and `train/0001.cls`, its class as a number. CCC's `sample_0` has the entries `input.jpg`, `output.cls` and `info`, a
text that says where it came from and how it was corrupted. Other entries are ignored. Images are in the order of the
sorted names of the shards, and in a shard in the order of its entries. Nothing but the standard tar reader is needed.
"""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from driftline.data import Dataset, file_errors, locate_user_path, numbered_names
from driftline.data.formats import images as pictures
from driftline.data.formats.decoded_images import DecodedImages, files_signature
from driftline.errors import UserError, unknown_name
from driftline.io.atomic import write_then_rename
from driftline.io.user_files import check_regular
from driftline.lazy_rows import LazyRows
from driftline.registry import register
from driftline.tasks import Classification
from driftline.types import JsonObject, Samples

if TYPE_CHECKING:
    from PIL.Image import Image

INDEX = "index.json"
"""A file beside the shards that says how many images each has; without it their entries are counted."""
QUALITY = 85
FORMATS = ("jpg", "png")
MIN_IMAGE_BYTES = 1024  # bytes that an image takes in a tar file, two headers
MAX_ENTRY_BYTES = 10_000  # bytes of a label or an info
IMAGE_FIELDS = ("input.jpg", "input.png", "jpg", "jpeg", "png")
LABEL_FIELDS = ("output.cls", "cls")
EXPECTED = "a tar file with jpg or png (input.jpg, input.png) and cls (output.cls) for each image"


@dataclass(frozen=True)
class Entry:
    """One image of a shard: the position of its bytes in the file, its class and its origin."""

    offset: int
    size: int
    label: int
    info: str


def list_shards(folder: Path) -> list[Path]:
    """Return the shards of a folder, in order."""
    found = sorted(folder.glob("*.tar"))
    if not found:
        raise UserError(f"no shard in {folder}: expected tar files such as serial_00000.tar")
    for shard in found:
        check_regular(shard)
    return found


def read_entries(shard: Path) -> list[Entry]:
    """Return the images of a shard in order, without their pixels."""
    found: list[Entry] = []
    with file_errors(shard, EXPECTED), tarfile.open(shard, "r:") as tar:
        for key, fields in groupby(_fields(tar), key=lambda field: field[0]):
            parts: JsonObject = {"info": ""}
            for _, field, member in fields:
                if field in IMAGE_FIELDS:
                    parts |= {"offset": member.offset_data, "size": member.size}
                elif field in LABEL_FIELDS or field == "info":
                    content = tar.extractfile(member)
                    assert content is not None
                    parts["label" if field in LABEL_FIELDS else "info"] = content.read(MAX_ENTRY_BYTES).decode()
            if parts.keys() == {"info"}:
                continue
            for part, what in (("offset", "image"), ("label", "class")):
                if part not in parts:
                    raise ValueError(f"no {what} of {key}")
            found.append(Entry(**{**parts, "label": int(parts["label"])}))
        numbered_names([entry.label for entry in found])
        if not found:
            raise ValueError("no image")
        return found


def _fields(tar: tarfile.TarFile) -> Iterator[tuple[str, str, tarfile.TarInfo]]:
    """Yield the entries of a tar file with the names of their sample and field."""
    for member in tar:
        folder, _, name = member.name.rpartition("/")
        key, _, field = name.partition(".")
        if member.isfile() and not member.issparse() and member.size >= 0 and not key.startswith("__"):
            yield f"{folder}/{key}".removeprefix("/"), field.lower(), member


def image_counts(folder: Path) -> dict[str, int]:
    """Return the number of images in each shard, from the index if there is one."""
    index, names = folder / INDEX, [shard.name for shard in list_shards(folder)]
    if index.exists():
        check_regular(index)
        with file_errors(index, "a JSON file with the number of images in each shard"):
            known = json.loads(index.read_bytes())
            found = {name: int(known["shards"][name]) for name in names}
            for name, count in found.items():
                if not 1 <= count <= (folder / name).stat().st_size // MIN_IMAGE_BYTES:
                    raise ValueError(f"{count} images in {name}, which is not of that size")
            return found
    return {name: len(read_entries(folder / name)) for name in names}


def read_image(shard: Path, offset: int, size: int) -> np.ndarray:
    """Return the picture at this place of a shard, in color."""
    return _read(shard, offset, size, lambda picture: np.asarray(picture.convert("RGB")))


def _read(shard: Path, offset: int, size: int, to_array: Callable[[Image], np.ndarray]) -> np.ndarray:
    with open(shard, "rb") as file:
        file.seek(offset)
        with file_errors(shard, EXPECTED), pictures.open_image(file.read(size)) as picture:
            return to_array(picture)


class ShardImages(DecodedImages):
    """The images of shards: of `side` pixels, or all of the size of the first one, which is square."""

    def __init__(self, shards: Sequence[Path], places: np.ndarray, side: int | None, resize: int | None) -> None:
        self.shards, self.places, self.side, self.resize = shards, places, side, resize
        first = self._read(0)
        if first.shape[0] != first.shape[1]:
            found = f"{first.shape[1]} x {first.shape[0]} pixels: choose a size with --set data.size=..."
            raise UserError(f"{self.shards[0].parent}: expected square images, but found {found}")
        super().__init__(len(self.places), first.shape)

    def decode(self, row: int) -> np.ndarray:
        image = self._read(row)
        if image.shape != self.shape[1:]:
            found = f"{self.shape[1:]} and {image.shape}: choose a size with --set data.size=..."
            raise UserError(f"{self.shards[0].parent}: expected images of one size, but found {found}")
        return image

    def signature(self) -> str:
        return f"{self.side} {self.resize} {files_signature(self.shards)}"

    def _read(self, row: int) -> np.ndarray:
        shard, offset, size = self.places[row].tolist()
        return _read(self.shards[shard], offset, size, self._to_array)

    def _to_array(self, picture: Image) -> np.ndarray:
        if self.resize is None or self.side is None:
            return pictures.to_square(picture, self.side)
        return pictures.to_center(picture, self.side, self.resize)


def write_shard(path: Path, images: Iterable[tuple[int, np.ndarray, int, str]], format: str = "jpg") -> int:
    """Write a shard of images, each with its number, class and info, atomically; return how many it has.

    png keeps every pixel; jpg is what CCC has.
    """
    if format not in FORMATS:
        raise unknown_name("format of images in shards", format, FORMATS)
    written = 0
    with write_then_rename(path) as temporary, tarfile.open(temporary, "w", format=tarfile.USTAR_FORMAT) as tar:
        for n, image, label, info in images:
            parts = {f"input.{format}": _encoded(image, format), "output.cls": str(label).encode()}
            for part, content in {**parts, "info": info.encode()}.items():
                member = tarfile.TarInfo(f"sample_{n}.{part}")  # its time stays 0: the same images, the same file
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
            written += 1
    return written


@register("dataset", "webdataset")
def webdataset(
    folders: Sequence[Path],
    *,
    path: str,  # folder of the tar files
    classes: int | None = None,  # number of classes; None: as many as the labels say
    size: int | None = None,  # height and width of the images in pixels; None: as they are
    resize: int | None = None,  # resize the short side to this and cut out the center; None: squeeze to a square
) -> Dataset:
    """All images of the shards in the folder `path`; an id is the place in the shards."""
    folder = locate_user_path(folders, path, "webdataset", "Give a folder: --set data.path=...")
    if size is not None:
        pictures.check_size(size)
        pictures.check_resize(size, resize)
    elif resize is not None:
        raise UserError("dataset 'webdataset': resize needs a size to cut out: --set data.size=...")
    shards = list_shards(folder)
    rows = np.concatenate([_rows(number, shard) for number, shard in enumerate(shards)])
    x, y = LazyRows.all_of(ShardImages(shards, rows[:, :3], size, resize)), rows[:, 3].copy()
    with file_errors(folder, EXPECTED):
        task = Classification(numbered_names(y if classes is None else [classes - 1]))
    samples = Samples(x=x, y=y, time=np.zeros(len(y), np.int64))
    return Dataset("webdataset", samples, task, (f"{len(y):,} images of {folder.name}",), model="conv-2")


def _rows(number: int, shard: Path) -> np.ndarray:
    """Return for each image of a shard the shard's number, the position and size of its bytes, and its class."""
    return np.array([(number, entry.offset, entry.size, entry.label) for entry in read_entries(shard)], np.int64)


def _encoded(image: np.ndarray, format: str) -> bytes:
    file = io.BytesIO()
    settings: JsonObject = {"quality": QUALITY, "optimize": True} if format == "jpg" else {}
    pictures.pil_image_module().fromarray(image).save(file, {"jpg": "JPEG", "png": "PNG"}[format], **settings)
    return file.getvalue()
