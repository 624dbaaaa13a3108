"""Datasets: the class, and checks of the samples."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from driftline.data import fingerprint_cache
from driftline.errors import UserError
from driftline.lazy_rows import LazyRows
from driftline.tasks import Classification, Task
from driftline.types import Inputs, Samples

MAX_CLASSES = 100_000
"""The most classes that only have numbers; a larger number is a mistake, and would take gigabytes."""
TEXTS_AT_ONCE = 10_000
"""Texts that a fingerprint copies at a time."""
ORIGINALS_AT_ONCE = 16
"""Images of full size that a fingerprint holds in memory at a time."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """Samples with their times, a task, and notes for readers of the results."""

    name: str
    samples: Samples
    task: Task
    notes: tuple[str, ...] = ()
    model: str = "mlp"
    """The default model for these data."""
    test: np.ndarray | None = None
    """Which rows are the official test set, never to be trained on; None without one."""
    subclasses: tuple[tuple[int, ...], ...] | None = None
    """For each class, the values of `samples.group` that divide it, in the order in which they enter the world."""
    clusters: tuple[str, ...] | None = None
    """Names of the sets that the samples come from, by `samples.group`; the first is upstream, the others are not."""
    base: np.ndarray | None = None
    """The original that each sample is a transformation of, by number; nothing if all samples are originals."""
    published_answers: np.ndarray | None = None
    """The answers of a published model, one per sample, if the files have them."""

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the content, the same whatever file format it was read from."""
        x = self.samples.x
        signature = x.source.signature() if isinstance(x, LazyRows) and hasattr(x.source, "signature") else None
        if signature is None:
            return self._hash(_blocks_of(x))
        unread = (b"full size", signature.encode(), x.rows.tobytes())
        return fingerprint_cache.recall(self._hash(unread), lambda: self._hash(_blocks_of(x)))

    def _hash(self, inputs: Iterable[bytes]) -> str:
        """Return a hash of the content, given that of the inputs."""
        digest = hashlib.sha256(repr(self.task).encode())
        for block in inputs:
            digest.update(block)
        for column in (self.samples.y, self.samples.time, self.samples.id, self.samples.group):
            for block in _blocks_of(column):
                digest.update(block)
        if self.samples.known is not None:
            digest.update(b"known" + _bytes_of(self.samples.known))
        if self.test is not None:
            digest.update(b"test" + _bytes_of(self.test))
        if self.subclasses is not None:
            digest.update(f"subclasses{self.subclasses}".encode())
        if self.clusters is not None:
            digest.update(f"clusters{self.clusters}".encode())
        if self.base is not None:
            digest.update(b"base" + _bytes_of(self.base))
        if self.published_answers is not None:
            digest.update(b"said" + _bytes_of(self.published_answers))
        return digest.hexdigest()[:16]


def validate(dataset: Dataset) -> None:
    """Refuse samples that cannot be evaluated, with a clear message."""
    s, name = dataset.samples, f"dataset '{dataset.name}'"
    if not len(s):
        raise UserError(f"{name} is empty")
    _check_texts(dataset, name)
    if not _is_finite(s.x):
        raise UserError(f"{name} has missing or infinite numbers in x; fill them in or leave them out")
    if not (s.id[1:] > s.id[:-1]).all():  # else none is repeated, and they need not be sorted in memory
        ids, counts = np.unique(s.id, return_counts=True)
        if len(ids) < len(s):
            most = f"{counts.max()} samples with the id {ids[counts.argmax()]}"
            raise UserError(f"{name} has {most}; an id must be unique")
    if isinstance(dataset.task, Classification):
        n = dataset.task.width
        if s.y.dtype.kind not in "iu" or s.y.min() < 0 or s.y.max() >= n:
            raise UserError(f"{name} has an answer outside 0..{n - 1}, the indices of its {n} classes")
    elif not _is_finite(s.y):
        raise UserError(f"{name} has missing or infinite answers")
    if s.time is None or not _is_finite(s.time):
        raise UserError(f"{name} has samples without a time; every sample needs one")
    if (s.time[1:] < s.time[:-1]).any():
        raise UserError(f"{name} is not in time order; sort its samples by time")
    _check_parts(dataset, name)


def _check_texts(dataset: Dataset, name: str) -> None:
    """Refuse texts that cannot be written to a file: pickles and arrays may hold halves of surrogate pairs."""
    s = dataset.samples
    columns: tuple[Any, ...] = (s.x, s.y, s.id, s.group, getattr(dataset.task, "classes", None), dataset.clusters)
    for column in columns:
        listed = isinstance(column, list | tuple) or (isinstance(column, np.ndarray) and column.dtype.kind in "OU")
        for text in column if listed else ():
            if isinstance(text, str) and not _is_unicode(text):
                raise UserError(f"{name} has a text that is not valid Unicode: {text[:40]!r}")


def _is_unicode(text: str) -> bool:
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False


def _check_parts(dataset: Dataset, name: str) -> None:
    """Refuse a test mask or sub-classes that do not fit the samples."""
    test, groups, n = dataset.test, dataset.samples.group, len(dataset.samples)
    if test is not None and (test.dtype != bool or test.shape != (n,)):
        raise UserError(f"{name} has a test mask of shape {test.shape} and type {test.dtype}, not {n} times yes or no")
    if test is not None and (test.all() or not test.any()):
        raise UserError(f"{name} has {'only' if test.all() else 'no'} test samples by its test mask")
    if dataset.base is not None and len(dataset.base) != n:
        raise UserError(f"{name} has {len(dataset.base)} numbers of originals for {n} samples")
    if dataset.published_answers is not None and len(dataset.published_answers) != n:
        raise UserError(f"{name} has {len(dataset.published_answers)} answers of a published model for {n} samples")
    if dataset.clusters is not None:
        known = groups is not None and groups.dtype.kind in "iu" and set(groups.tolist()) == set(range(_count(dataset)))
        if not known:
            raise UserError(
                f"{name} names {_count(dataset)} clusters, and its samples' groups are not just their numbers"
            )
    if dataset.subclasses is None:
        return
    if groups is None:
        raise UserError(f"{name} names sub-classes, but its samples have no group to assign them")
    listed_pairs = {(k, group) for k, listed in enumerate(dataset.subclasses) for group in listed}
    strays = set(zip(dataset.samples.y.tolist(), groups.tolist(), strict=True)) - listed_pairs
    if strays:
        k, group = min(strays)
        raise UserError(f"{name} has samples of class {k} in a sub-class that it does not list: {group}")


def _count(dataset: Dataset) -> int:
    return len(dataset.clusters or ())


def numbered_names(labels: Sequence[int] | np.ndarray) -> tuple[str, ...]:
    """Return the names 0, 1, ... of classes that only have numbers, up to the largest label.

    >>> numbered_names([2, 0])
    ('0', '1', '2')
    """
    for label in (min(labels, default=0), max(labels, default=0)):
        if not 0 <= label < MAX_CLASSES:
            raise ValueError(f"the class {str(label)[:20]}, not a number from 0 to {MAX_CLASSES - 1}")
    return tuple(str(k) for k in range(int(max(labels, default=0)) + 1))


def _is_finite(x: Inputs) -> bool:
    """Return whether no number in an array, sparse matrix, table or list is missing or infinite."""
    if hasattr(x, "select_dtypes"):
        return bool(np.isfinite(x.select_dtypes("number").to_numpy(float)).all())
    numbers = x.data if hasattr(x, "tocsr") else x if hasattr(x, "dtype") else np.zeros(0)
    return numbers.dtype.kind not in "fcmM" or bool(np.isfinite(np.asarray(numbers)).all())


def _blocks_of(column: object) -> Iterator[bytes]:
    """Yield the bytes of a column, those of lazy rows and of texts block by block."""
    if isinstance(column, LazyRows):
        yield f"{column.dtype.str}{column.shape}".encode()
        yield from (block.tobytes() for block in column.blocks())
        yield from _other_sizes(column)
    elif isinstance(column, np.ndarray) and column.dtype.kind == "U":  # it may be mapped from a file
        yield f"{column.dtype.str}{column.shape}".encode()
        yield from (column[start : start + TEXTS_AT_ONCE].tobytes() for start in range(0, len(column), TEXTS_AT_ONCE))
    else:
        yield _bytes_of(column)


def _other_sizes(x: LazyRows) -> Iterator[bytes]:
    """Yield images at full size, for random crops, where rows have another size."""
    if not hasattr(x.source, "read_originals"):
        return
    for start in range(0, len(x), ORIGINALS_AT_ONCE):
        for image in x.source.read_originals(x.rows[start : start + ORIGINALS_AT_ONCE].tolist()):
            if image.shape != x.shape[1:]:
                yield f"{image.shape}".encode() + image.tobytes()


def _bytes_of(column: object) -> bytes:
    if column is None:
        return b"none"
    if hasattr(column, "to_csv"):
        return str(column.to_csv(index=False)).encode()
    if hasattr(column, "tocsr"):
        matrix = column.tocsr()
        return b"".join(_bytes_of(part) for part in (matrix.indptr, matrix.indices, matrix.data))
    if isinstance(column, list) or (isinstance(column, np.ndarray) and column.dtype == object):
        return "\x00".join(map(str, column)).encode()
    array = np.ascontiguousarray(column)
    return f"{array.dtype.str}{array.shape}".encode() + array.tobytes()
