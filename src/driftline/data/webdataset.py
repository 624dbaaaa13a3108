"""Images in tar files, a few entries per image: the layout of WebDataset in which CCC is distributed.

An image `sample_<n>` has the entries `input.jpg` (or `input.png`), `output.cls`, its class as a number, and `info`, a
text that says where it came from and how it was corrupted. Shards are called serial_00000.tar and so on; images are
in the order of the shards, and in a shard in the order of its entries. Nothing but the standard tar reader is needed.
"""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

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

INDEX = "index.json"
"""A file beside the shards that says how many images each has; without it their entries are counted."""
QUALITY = 85
FORMATS = ("jpg", "png")
MIN_IMAGE_BYTES = 1024  # bytes that an image takes in a tar file, two headers
MAX_ENTRY_BYTES = 10_000  # bytes of a label or an info
EXPECTED = "a tar file with input.jpg or input.png and output.cls for each image"


@dataclass(frozen=True)
class Entry:
    """One image of a shard: its name, the position of its bytes in the file, its class and its origin."""

    name: str
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
    places: dict[str, JsonObject] = {}
    with file_errors(shard, EXPECTED), tarfile.open(shard, "r:") as tar:
        for member in tar:
            if not member.isfile() or member.issparse() or member.size < 0:
                continue
            name, _, part = member.name.rpartition("/")[2].partition(".")
            parts = places.setdefault(name, {"info": ""})
            if part in ("input.jpg", "input.png"):
                parts |= {"offset": member.offset_data, "size": member.size}
            elif part in ("output.cls", "info"):
                content = tar.extractfile(member)
                assert content is not None
                parts[part] = content.read(MAX_ENTRY_BYTES).decode()
        found = [
            Entry(name, parts["offset"], parts["size"], int(parts["output.cls"]), parts["info"])
            for name, parts in places.items()
        ]
        numbered_names([entry.label for entry in found])
        if not found:
            raise ValueError("no image")
        return found


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
    with open(shard, "rb") as file:
        file.seek(offset)
        with file_errors(shard, EXPECTED), pictures.open_image(file.read(size)) as picture:
            return np.asarray(picture.convert("RGB"))


class ShardImages(DecodedImages):
    """The images of shards, all of the size of the first one, which is square."""

    def __init__(self, listed: Mapping[Path, Sequence[Entry]]) -> None:
        self.shards = list(listed)
        self.places = np.array(
            [(k, entry.offset, entry.size) for k, entries in enumerate(listed.values()) for entry in entries]
        )
        first = self._read(0)
        if first.shape[0] != first.shape[1]:
            found = f"{first.shape[1]} x {first.shape[0]} pixels"
            raise UserError(f"{self.shards[0].parent}: expected square images, but found {found}")
        super().__init__(len(self.places), first.shape)

    def decode(self, row: int) -> np.ndarray:
        image = self._read(row)
        if image.shape != self.shape[1:]:
            found = f"{self.shape[1:]} and {image.shape}"
            raise UserError(f"{self.shards[0].parent}: expected images of one size, but found {found}")
        return image

    def signature(self) -> str:
        return files_signature(self.shards)

    def _read(self, row: int) -> np.ndarray:
        shard, offset, size = self.places[row].tolist()
        return read_image(self.shards[shard], offset, size)


def write_shard(
    path: Path, images: Iterable[tuple[int, np.ndarray, int, str]], format: str = "jpg", quality: int = QUALITY
) -> int:
    """Write a shard of images, each with its number, class and info, atomically; return how many it has.

    png keeps every pixel; jpg is what CCC has.
    """
    if format not in FORMATS:
        raise unknown_name("format of images in shards", format, FORMATS)
    written = 0
    with write_then_rename(path) as temporary, tarfile.open(temporary, "w", format=tarfile.USTAR_FORMAT) as tar:
        for n, image, label, info in images:
            parts = {f"input.{format}": _encoded(image, format, quality), "output.cls": str(label).encode()}
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
) -> Dataset:
    """All images of the shards in the folder `path`; there are as many classes as labels say if not given. An id is the
    place in the shards.
    """
    folder = locate_user_path(folders, path, "webdataset", "Give a folder: --set data.path=...")
    listed = {shard: read_entries(shard) for shard in list_shards(folder)}
    y = np.array([entry.label for entries in listed.values() for entry in entries], np.int64)
    x = LazyRows.all_of(ShardImages(listed))
    with file_errors(folder, EXPECTED):
        task = Classification(numbered_names(y if classes is None else [classes - 1]))
    samples = Samples(x=x, y=y, time=np.zeros(len(y), np.int64))
    return Dataset("webdataset", samples, task, (f"{len(y):,} images of {folder.name}",), model="conv-2")


def _encoded(image: np.ndarray, format: str, quality: int) -> bytes:
    file = io.BytesIO()
    settings: JsonObject = {"quality": quality, "optimize": True} if format == "jpg" else {}
    pictures.pil_image_module().fromarray(image).save(file, {"jpg": "JPEG", "png": "PNG"}[format], **settings)
    return file.getvalue()
