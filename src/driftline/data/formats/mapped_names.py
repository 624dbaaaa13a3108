"""Names of many files, mapped from a temporary file instead of kept in memory."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import IO

import numpy as np

from driftline.io.atomic import disk_errors

NAMES_AT_ONCE = 10_000


def mapped_names(parts: Iterable[Iterable[str]]) -> tuple[np.ndarray, list[int]]:
    """Return all names in one array, and how many each part has. At most 10,000 are in memory at a time.

    >>> names, counts = mapped_names([["a/1.png"], ["b/1.png", "b/10.png"]])
    >>> names.tolist(), counts
    (['a/1.png', 'b/1.png', 'b/10.png'], [1, 2])
    """
    counts, blocks, width = [], 0, 1
    with disk_errors(_folder()), _temporary_file() as narrow, _temporary_file() as wide:
        for part in parts:
            counts.append(0)
            left = iter(part)
            while names := list(islice(left, NAMES_AT_ONCE)):
                block = np.array(names, np.str_)
                np.save(narrow, block)
                counts[-1] += len(block)
                blocks, width = blocks + 1, max(width, block.dtype.itemsize // 4)
        narrow.seek(0)
        for _ in range(blocks):
            wide.write(np.load(narrow).astype(f"<U{width}").tobytes())
        wide.flush()
        names_of_all = np.memmap(wide, f"<U{width}", mode="r") if blocks else np.zeros(0, np.str_)
        return np.asarray(names_of_all), counts


def _temporary_file() -> IO[bytes]:
    """Return a temporary file that is deleted when it is no longer used."""
    return tempfile.TemporaryFile(dir=_folder())


def _folder() -> Path:
    """Return the user's cache folder, else the folder of temporary files, which is often in memory."""
    from platformdirs import user_cache_path

    folder = user_cache_path("driftline")
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
        return folder
    return Path(tempfile.gettempdir())
