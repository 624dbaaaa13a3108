"""Images that are decoded when they are needed, by a few threads.

Decoded images are cached, in each process up to the number of bytes in DRIFTLINE_IMAGE_CACHE (such as 4GB; 0 for none).
A full cache keeps what it has: one that dropped the oldest images would be of no use to a pass over more than fit.
"""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, TypeVar
from weakref import WeakSet

import numpy as np
from pydantic import ByteSize, TypeAdapter, ValidationError

from driftline.errors import UserError
from driftline.io.locate import file_errors
from driftline.lazy_rows import LazyRows

CACHE_VARIABLE = "DRIFTLINE_IMAGE_CACHE"
DEFAULT_CACHE = "1GB"
THREADS = min(4, os.cpu_count() or 1)
MIN_THREADED = 4
"""Fewer images are decoded by the caller's thread: starting others would take longer."""

S = TypeVar("S")
T = TypeVar("T")


class DecodedImages(ABC):
    """Byte images of one shape, decoded by `decode` and cached."""

    dtype: ClassVar[np.dtype[Any]] = np.dtype(np.uint8)
    _sources: ClassVar[WeakSet[DecodedImages]] = WeakSet()

    def __init__(self, n: int, shape: tuple[int, ...]) -> None:
        self.shape = (n, *shape)
        self._cache: dict[int, np.ndarray] = {}
        self._cached_bytes = 0
        self._limit = cache_limit()
        self._sources.add(self)

    @abstractmethod
    def decode(self, row: int) -> np.ndarray:
        """Return one image."""

    def signature(self) -> str | None:
        """Return a text that changes with the images, made without decoding them; None if there is no such text."""
        return None

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        images = np.empty((len(rows), *self.shape[1:]), self.dtype)
        missing = []
        for place, row in enumerate(rows.tolist()):
            cached = self._cache.get(row)
            if cached is None:
                missing.append((place, row))
            else:
                images[place] = cached

        def fill(entry: tuple[int, int]) -> None:
            images[entry[0]] = self.decode(entry[1])

        _map(fill, missing)
        for place, row in missing:
            if not self._keep(self._cache, row, images[place]):
                break
        return images

    def _keep(self, cache: dict[int, np.ndarray], row: int, image: np.ndarray) -> bool:
        """Cache a copy of an image if there is room; return whether it is cached."""
        if row in cache:
            return True
        if sum(source._cached_bytes for source in tuple(self._sources)) + image.nbytes > self._limit:
            return False
        cache[row] = image.copy()
        self._cached_bytes += image.nbytes
        return True

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_cache": {}, "_cached_bytes": 0}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self._sources.add(self)


class ResizedImages(DecodedImages):
    """Images that are resized when they are decoded, and may be read at their full size."""

    def __init__(self, n: int, shape: tuple[int, ...]) -> None:
        super().__init__(n, shape)
        self._originals: dict[int, np.ndarray] = {}

    @abstractmethod
    def original(self, row: int) -> np.ndarray:
        """Return one image at its full size."""

    def originals(self, rows: np.ndarray) -> list[np.ndarray]:
        """Return images at their full size, cached."""
        missing = [row for row in dict.fromkeys(rows.tolist()) if row not in self._originals]
        new = dict(zip(missing, self.read_originals(missing), strict=True))
        for row, image in new.items():
            self._keep(self._originals, row, image)
        return [new[row] if row in new else self._originals[row] for row in rows.tolist()]

    def read_originals(self, rows: Sequence[int]) -> list[np.ndarray]:
        """Return images at their full size, without caching them."""
        return _map(self.original, rows)

    def __getstate__(self) -> dict[str, object]:
        return {**super().__getstate__(), "_originals": {}}


class ImageFiles(ResizedImages):
    """Images in files of a folder, each read by `read`, which takes None as `size` for the full size."""

    def __init__(self, folder: Path, names: np.ndarray, read: partial[np.ndarray], shape: tuple[int, ...]) -> None:
        super().__init__(len(names), shape)
        self.folder, self.names, self.read = folder, names, read

    def decode(self, row: int) -> np.ndarray:
        return self.read(self.folder / str(self.names[row]))

    def original(self, row: int) -> np.ndarray:
        return self.read(self.folder / str(self.names[row]), size=None)

    def signature(self) -> str | None:
        files = files_signature(self.folder / str(name) for name in self.names)
        return f"{self.read.func.__qualname__} {self.read.keywords} {files}"


def image_files(folder: Path, names: np.ndarray, read: partial[np.ndarray], shape: tuple[int, ...]) -> LazyRows:
    """Return the images of these files, decoded when they are needed."""
    return LazyRows.all_of(ImageFiles(folder, names, read, shape))


def files_signature(files: Iterable[Path]) -> str:
    """Return a hash of the names, sizes and times of change of files, and of the version of the decoder."""
    import PIL

    digest = hashlib.sha256(PIL.__version__.encode())
    for file in files:
        with file_errors(file, "a picture"):
            found = os.stat(file)
        digest.update(f"{file}\0{found.st_size}\0{found.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def cache_limit() -> int:
    """Return how many bytes of decoded images a process may cache."""
    given = os.environ.get(CACHE_VARIABLE, DEFAULT_CACHE)
    try:
        return TypeAdapter(ByteSize).validate_python(given)
    except ValidationError:
        raise UserError(f"{CACHE_VARIABLE}={given[:40]}: give a number of bytes, such as 500MB or 4GB") from None


def _map(call: Callable[[S], T], items: Sequence[S]) -> list[T]:
    if len(items) < MIN_THREADED:
        return [call(item) for item in items]
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(call, items))
