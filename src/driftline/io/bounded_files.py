"""Open untrusted files safely: pipes and devices are refused, and a small file cannot unpack to gigabytes.

A compressed file may unpack to 256 MB, or to 100 times its own size if that is more. Functions raise a ValueError that
says what was found; call them inside `io.locate.file_errors`, which names the file.
"""

from __future__ import annotations

import gzip
import io
import os
import stat
import zipfile
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from driftline.errors import MissingExtra

ALWAYS_ALLOWED_BYTES = 2**28  # bytes that any file may unpack to
MAX_RATIO = 100
ZIP_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def max_unpacked_bytes(path: Path) -> int:
    """Return the number of bytes that a file may unpack to; refuse what is not a regular file."""
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        raise ValueError("a folder, a pipe or a device, not a file")
    return max(ALWAYS_ALLOWED_BYTES, MAX_RATIO * status.st_size)


def check_size(size: int, allowed: int) -> None:
    """Refuse a size above the limit."""
    if size > allowed:
        raise ValueError(f"more than {allowed / 1e9:.1f} GB once unpacked, too much for a file of its size")


def open_file(path: Path) -> BinaryIO:
    """Open a plain or gzipped file for reading; raise ValueError once it unpacks to too much."""
    allowed = max_unpacked_bytes(path)
    if path.suffix.lower() != ".gz":
        return open(path, "rb")
    return io.BufferedReader(_BoundedReader(path, allowed))


def check_unpacked(path: Path) -> None:
    """Refuse a gzipped file that unpacks to too much before anything of it is kept in memory."""
    if path.suffix.lower() == ".gz":
        with open_file(path) as file:
            while file.read(2**20):
                pass


class _BoundedReader(io.RawIOBase):
    """The content of a gzipped file, up to a number of bytes."""

    def __init__(self, path: Path, allowed: int) -> None:
        self._file = gzip.open(path, "rb")  # noqa: SIM115  (closed with this object)
        self._allowed, self._read = allowed, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self._file.readinto(buffer)
        self._read += count
        check_size(self._read, self._allowed)
        return count

    def close(self) -> None:
        self._file.close()
        super().close()


def open_zip(path: Path) -> zipfile.ZipFile:
    """Open a zip file whose entries together are not too large."""
    allowed = max_unpacked_bytes(path)
    opened = zipfile.ZipFile(path)
    try:
        for entry in opened.infolist():
            if entry.compress_type not in ZIP_METHODS:
                raise ValueError(f"'{entry.filename}' packed in an unusual way (method {entry.compress_type})")
        check_size(sum(entry.file_size for entry in opened.infolist()), allowed)
    except ValueError:
        opened.close()
        raise
    return opened


def read_npz(path: Path) -> dict[str, np.ndarray]:
    """Read all arrays of an npz file."""
    open_zip(path).close()
    with np.load(path, allow_pickle=False) as content:
        parts = {name: np.asarray(content[name]) for name in content.files}
    for part in parts.values():
        check_size(part.size, max(part.nbytes, ALWAYS_ALLOWED_BYTES))  # an item may take no byte at all
    return parts


def open_hdf5(path: Path) -> Any:
    """Open an HDF5 file, to be closed by `with`; read its content through `hdf5_member`."""
    try:
        import h5py
    except ImportError:
        raise MissingExtra(f"reading {path.name}", "vision") from None
    max_unpacked_bytes(path)
    return h5py.File(path, "r")


def open_parquet(path: Path) -> Any:
    """Open a Parquet file, to be closed by `with`, that does not promise more than a file of its size can hold."""
    from pyarrow.parquet import ParquetFile

    allowed = max_unpacked_bytes(path)
    file = ParquetFile(path)
    try:
        about = file.metadata
        check_size(sum(about.row_group(k).total_byte_size for k in range(about.num_row_groups)), allowed)
        check_size(about.num_rows * about.num_columns, allowed)
    except ValueError:
        file.close()
        raise
    return file


def hdf5_member(group: Any, *names: str) -> Any:
    """Return the group or dataset at this path in an HDF5 file, which must hold all of it itself.

    Links, external storage and virtual datasets can name any other file; chunks that were never written take no space.
    """
    import h5py

    for name in names:
        link = group.get(name, getlink=True)
        if link is None:
            raise KeyError(name)
        if not isinstance(link, h5py.HardLink):
            raise ValueError(f"'{name}' in {group.name}, which is a link to elsewhere")
        group = group[name]
    if isinstance(group, h5py.Dataset):
        if group.external or group.is_virtual:
            raise ValueError(f"{group.name}, whose data lie in another file")
        chunk = int(np.prod(group.chunks or (0,), dtype=object)) * group.dtype.itemsize
        check_size(max(group.nbytes, group.size or 0, chunk), max_unpacked_bytes(Path(group.file.filename)))
    return group
