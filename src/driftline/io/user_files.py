"""Files that a user named, for work that may be done on a machine that does not have them.

A name stays what it is, since a run's key and card contain it. What changes is where it is read: a copy that came with
the work goes before the place that the name says.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

_copies: dict[str, Path] = {}


def resolve(name: str | Path) -> Path:
    """Where the file or folder of this name is to be read."""
    return _copies.get(str(name)) or Path(os.path.expanduser(name))


@contextmanager
def use_copies(copies: Mapping[str, Path]) -> Iterator[None]:
    """Read these copies for the names they have, in all threads of this process."""
    before = dict(_copies)
    _copies.update(copies)
    try:
        yield
    finally:
        _copies.clear()
        _copies.update(before)


def iter_strings(value: object) -> Iterator[str]:
    """All texts in a tree of settings that could name a file.

    >>> list(iter_strings({"method": "own.py:Own", "points": [{"weights": "a.pt", "lr": 0.1}]}))
    ['own.py:Own', 'a.pt']
    """
    if isinstance(value, str) and "\n" not in value and "\0" not in value and len(value) < 1000:
        yield value
    elif isinstance(value, dict | list | tuple):
        for one in value.values() if isinstance(value, dict) else value:
            yield from iter_strings(one)


def source_files(text: str) -> list[str]:
    """The files of a user's code that a text names, as `my own.py:Own` and `C+fade.py:Fade=20,R` do."""
    named = (text.rpartition(":")[0], *re.findall(r"([^\s,+]+\.py):", text))
    return [path for path in dict.fromkeys(named) if path.endswith(".py") and os.path.isfile(resolve(path))]
