"""Rows of an array that are read when they are needed, such as images in files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike

BLOCK_BYTES = 1 << 24
"""How much a pass over all rows holds in memory at a time."""


class RowSource(Protocol):
    """Rows to read: a memory-mapped array, or images to decode (`data.formats.decoded_images`)."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> np.dtype: ...

    def __getitem__(self, rows: np.ndarray, /) -> np.ndarray: ...


@dataclass(frozen=True, eq=False)
class LazyRows:
    """Some rows of a source, in any order.

    Indexing reads rows into an array, and so does `numpy.asarray`; `take` and `concat` read nothing.

    >>> x = LazyRows(np.array([[1, 2], [3, 4], [5, 6]]), np.arange(3))
    >>> x.take([2, 0]).shape, x.take([2, 0])[0].tolist(), x[1:].tolist()
    ((2, 2), [5, 6], [[3, 4], [5, 6]])
    """

    source: RowSource
    rows: np.ndarray

    @staticmethod
    def all_of(source: RowSource) -> LazyRows:
        """Return all rows of a source."""
        return LazyRows(source, np.arange(source.shape[0]))

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.rows), *self.source.shape[1:])

    @property
    def dtype(self) -> np.dtype:
        return self.source.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> np.ndarray:
        if isinstance(index, tuple):
            part = self[index[0]]
            return np.asarray(part[index[1:] if part.ndim < self.ndim else (slice(None), *index[1:])])
        rows = self.take(index).rows
        return np.asarray(self.source[rows] if rows.ndim else self.source[rows[None]][0])

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        return self[:].astype(dtype or self.dtype, copy=False)

    def __deepcopy__(self, memo: object) -> LazyRows:
        return self  # nothing in it changes

    def take(self, index: Any) -> LazyRows:
        """Return the rows of an index without reading them."""
        return LazyRows(self.source, np.asarray(self.rows[index if isinstance(index, slice) else np.asarray(index)]))

    def blocks(self) -> Iterator[np.ndarray]:
        """Read all rows in order, a block at a time."""
        size = max(1, BLOCK_BYTES // max(1, int(np.prod(self.shape[1:])) * self.dtype.itemsize))
        for start in range(0, len(self), size):
            yield self[start : start + size]

    @staticmethod
    def concat(parts: Sequence[Any]) -> LazyRows | np.ndarray:
        """Concatenate rows; they stay unread if all are of one source."""
        first = parts[0]
        if all(isinstance(part, LazyRows) and part.source is first.source for part in parts):
            return LazyRows(first.source, np.concatenate([part.rows for part in parts]))
        return np.concatenate([np.asarray(part) for part in parts])


def originals(images: LazyRows | np.ndarray) -> Sequence[np.ndarray]:
    """Read images at their full size, each of its own shape; as they are if their source has no other size."""
    if isinstance(images, LazyRows) and hasattr(images.source, "originals"):
        found: Sequence[np.ndarray] = images.source.originals(images.rows)
        return found
    return list(np.asarray(images))
