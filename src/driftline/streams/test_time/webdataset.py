"""Write a corruption stream to shards, and read a stream from shards, such as the original files of CCC."""

from __future__ import annotations

import hashlib
import json
import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache
from itertools import accumulate
from pathlib import Path

import numpy as np

from driftline.data import file_errors, webdataset
from driftline.errors import UserError
from driftline.io.atomic import write_json
from driftline.io.user_files import resolve
from driftline.streams.test_time.schedule import CorruptionPair
from driftline.streams.test_time.stream import CorruptionStream
from driftline.types import JsonObject, Samples, Step

PER_SHARD = 25_000
CACHED_SHARDS = 2  # lists of entries in memory: a batch may begin in one shard and end in the next
INFO_PATTERN = re.compile(r"\+\+(dir|name|n1|s1|n2|s2)\+\+(.*?)(?=\+\+|$)")


def write_shards(stream: CorruptionStream, folder: Path, per_shard: int = PER_SHARD, format: str = "jpg") -> list[Path]:
    """Write a stream as shards of whole points with at least `per_shard` images each, like CCC's.

    Shards that are there already are left alone, so that writing goes on where it stopped. A `format` of png keeps
    every pixel. Numbers of images go to index.json beside the shards.
    """
    size = -(-per_shard // stream.images_per_point) * stream.images_per_point
    index, key = folder / webdataset.INDEX, _key(stream, size, format)
    done = _finished_shards(index, key)
    paths = []
    for number, begin in enumerate(range(0, stream.n_images, size)):
        path = folder / f"serial_{number:05d}.tar"
        paths.append(path)
        if path.name not in done or not path.exists():
            images = _iter_images(stream, begin, min(begin + size, stream.n_images))
            done[path.name] = webdataset.write_shard(path, images, format)
            write_json(index, {"stream": key, "shards": done})
    return paths


def _finished_shards(index: Path, key: str) -> dict[str, int]:
    """Return the existing shards of this stream, with their numbers of images."""
    if not index.exists():
        return {}
    with file_errors(index, "a JSON file with the number of images in each shard"):
        known = json.loads(index.read_bytes())
        if known.get("stream") != key:
            raise UserError(f"{index.parent} holds the shards of another stream: choose another folder")
        return dict(known["shards"])


def _key(stream: CorruptionStream, size: int, format: str) -> str:
    """Return a hash of what decides the shards' content, except the pixels of the source."""
    settings = json.dumps([stream.protocol, stream.seed.value, size, format, list(stream.source.x.shape)])
    content = settings.encode() + np.asarray(stream.source.y).tobytes() + "\0".join(map(str, stream.source.id)).encode()
    return hashlib.sha256(content).hexdigest()[:16]


def _iter_images(stream: CorruptionStream, begin: int, end: int) -> Iterator[tuple[int, np.ndarray, int, str]]:
    """Yield the images of these positions with their number, class and info."""
    for index in range(begin // stream.batch, -(-end // stream.batch)):
        step = stream[index].samples
        assert step.group is not None
        rows = stream.rows(step.id)
        for position, image, label, point, row in zip(step.id, step.x, step.y, step.group, rows, strict=True):
            if begin <= position < end:
                name = str(stream.source.id[row])
                yield int(position), image, int(label), format_info(stream.schedule.point(int(point)), name)


def format_info(point: CorruptionPair, name: str) -> str:
    """Return the source of an image and its corruptions, as CCC writes them.

    >>> format_info(CorruptionPair("fog", 0.25, "snow", 5.0), "n01440764/x.jpg")
    '++dir++n01440764++name++x.jpg++n1++fog++s1++0.25++n2++snow++s2++5.0'
    """
    folder, _, file = name.rpartition("/")
    parts = {"dir": folder, "name": file, "n1": point.first, "s1": point.s1, "n2": point.second, "s2": point.s2}
    return "".join(f"++{key}++{value}" for key, value in parts.items())


def parse_info(text: str) -> CorruptionPair:
    """Return the corruptions of an image from its info.

    >>> print(parse_info("++dir++a++name++x.jpg++n1++fog++s1++0.25++n2++snow++s2++5.0"))
    fog 0.25 + snow 5
    """
    found = dict(INFO_PATTERN.findall(text))
    try:
        return CorruptionPair(found["n1"], float(found["s1"]), found["n2"], float(found["s2"]))
    except (KeyError, ValueError):
        raise UserError(f"the info of an image does not name its corruptions: {text!r}") from None


class Shards:
    """The images of the shards in a folder, in order, `batch` of them in a step, the first `images` or all.

    A sample's id is its place in the shards. Only the lists of two shards are in memory at a time.
    """

    def __init__(self, folder: Path, batch: int = 64, images: int | None = None, classes: int | None = None) -> None:
        self.folder, self.batch, self.classes = folder, batch, classes
        counts = webdataset.image_counts(folder)
        self._names, self._ends = list(counts), list(accumulate(counts.values()))
        self.n_images = self._ends[-1] if images is None else min(images, self._ends[-1])
        self._entries = lru_cache(maxsize=CACHED_SHARDS)(lambda name: self._checked_entries(name, counts[name]))

    def _checked_entries(self, name: str, count: int) -> list[webdataset.Entry]:
        found = webdataset.read_entries(self.folder / name)
        if len(found) != count:
            raise UserError(
                f"{self.folder / name} has {len(found)} images, and {webdataset.INDEX} beside it says {count}: delete "
                f"{webdataset.INDEX}, and the images are counted"
            )
        last = max(entry.label for entry in found)
        if self.classes is not None and last >= self.classes:
            raise UserError(
                f"{self.folder / name} has an image of class {last}, and the data have {self.classes} classes"
            )
        return found

    def __len__(self) -> int:
        return -(-self.n_images // self.batch)

    def __getitem__(self, index: int) -> Step:
        index = range(len(self))[index]
        places = np.arange(index * self.batch, min((index + 1) * self.batch, self.n_images))
        owners = np.array([bisect_right(self._ends, place) for place in places])
        entries, images = [], []
        for owner in np.unique(owners):
            begin = self._ends[owner - 1] if owner else 0
            listed = self._entries(self._names[owner])
            wanted = [listed[place - begin] for place in places[owners == owner]]
            entries += wanted
            shard = self.folder / self._names[owner]
            images += [webdataset.read_image(shard, entry.offset, entry.size) for entry in wanted]
        shapes = sorted({image.shape for image in images})
        if len(shapes) > 1:
            raise UserError(f"{self.folder}: expected images of one size, but found {shapes[0]} and {shapes[1]}")
        y = np.array([entry.label for entry in entries], np.int64)
        moment = entries[0].info
        return Step(index, str(parse_info(moment)) if moment else str(index), Samples(np.stack(images), y, id=places))

    @property
    def protocol(self) -> JsonObject:
        """The description of the stream on the card."""
        return {"images": self.n_images, "batch": self.batch, "shards": len(self._names), "folder": self.folder.name}


def shards(folder: Path | str, batch: int = 64, n_images: int | None = None, classes: int | None = None) -> Shards:
    """Return a stream from the shards of a folder: the first `n_images` images, or all.

    `classes`: how many classes there are; a shard with another one is refused.
    """
    for name, value in (("batch", batch), ("images", n_images)):
        if value is not None and value < 1:
            raise UserError(f"{name}={value}: give a whole number from 1")
    return Shards(resolve(folder), batch, n_images, classes)
