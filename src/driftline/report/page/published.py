"""Published numbers beside ours: a dot plot per table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PublishedFigures:
    """A title and a dot plot per table."""

    title: str
    tables: tuple[object, ...]
