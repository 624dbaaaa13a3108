"""Files that a user named, also on machines that only have copies of them.

A run's key and card contain the name, so it never changes. `use_copies` changes where it is read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from driftline.errors import UserError

_copies: dict[str, Path] = {}


def resolve(name: str | Path) -> Path:
    """Return the path at which the file or folder of this name is read."""
    return _copies.get(str(name)) or Path(os.path.expanduser(name))


def check_regular(path: Path) -> None:
    """Refuse a folder, and a pipe or a device, which could wait for ever."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise UserError(f"{path} is a folder, a pipe or a device, not a file")


@contextmanager
def use_copies(copies: Mapping[str, Path]) -> Iterator[None]:
    """Read these copies in place of the files they are named by, in all threads of this process."""
    before = dict(_copies)
    _copies.update(copies)
    try:
        yield
    finally:
        _copies.clear()
        _copies.update(before)


def iter_strings(value: object) -> Iterator[str]:
    """Yield all texts in a tree of settings that could name a file.

    >>> list(iter_strings({"method": "own.py:Own", "points": [{"weights": "a.pt", "lr": 0.1}]}))
    ['own.py:Own', 'a.pt']
    """
    if isinstance(value, str) and "\n" not in value and "\0" not in value and len(value) < 1000:
        yield value
    elif isinstance(value, dict | list | tuple):
        for one in value.values() if isinstance(value, dict) else value:
            yield from iter_strings(one)


def source_files(text: str) -> list[str]:
    """Return the files of a user's code that a text names, as `my own.py:Own` and `C+fade.py:Fade=20,R` do."""
    named = (text.rpartition(":")[0], *re.findall(r"([^\s,+]+\.py):", text))
    return [path for path in dict.fromkeys(named) if path.endswith(".py") and os.path.isfile(resolve(path))]
