"""Files that a user named, for work that may be done on a machine that does not have them.

A name stays what it is, since a run's key and card contain it. What changes is where it is read: a copy that came with
the work goes before the place that the name says.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

_copies: dict[str, Path] = {}


def file_of(name: str | Path) -> Path:
    """Where the file or folder of this name is to be read."""
    return _copies.get(str(name)) or Path(name).expanduser()


def instead(copies: Mapping[str, Path]) -> None:
    """From now on read these copies, and no others, for the names they have."""
    _copies.clear()
    _copies.update(copies)
