"""One vector per class; comparing a sample gives the same digits alone and in a block.

A sum over features always adds them in the same order, whatever the size of the block. A library for linear algebra
chooses its order by the shape of the block, so none is used here.

A block is compared once, with the vectors as they are at its start. When a class gets another vector, the rows of the
block that were not answered yet are compared with it at once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import types

from driftline.jit import cached_cfunc, cached_njit

CHUNK = 96
"""The maximum number of rows in a block."""
TILE = 64  # classes whose vectors stay in the processor's cache while the rows of a block are compared with them


@cached_njit()
def compare(rows: np.ndarray, columns: np.ndarray, known: np.ndarray, outputs: np.ndarray, euclidean: bool) -> None:
    """Set the dot product of each row with each column or, if euclidean, minus the squared distance."""
    outputs[:] = 0
    for first in range(0, len(known), TILE):
        for i in range(len(rows)):
            found = outputs[i, first : first + TILE]
            for k in range(len(columns)):
                add_products(found, rows[i, k], columns[k, first : first + TILE], euclidean)
    for label in range(len(known)):
        if not known[label]:
            outputs[:, label] = -np.inf


@cached_njit(inline="always")
def add_products(sums: np.ndarray, feature: float, others: np.ndarray, euclidean: bool) -> None:
    """Add to each sum what one feature contributes to the comparison with another."""
    if euclidean:
        for j in range(len(sums)):
            sums[j] -= (feature - others[j]) * (feature - others[j])
    else:
        for j in range(len(sums)):
            sums[j] += feature * others[j]


@cached_njit()
def compare_with_one(
    label: int, vector: np.ndarray, block: np.ndarray, outputs: np.ndarray, answered: int, euclidean: bool
) -> None:
    """Compare the rows of a block from `answered` on with the vector of one class; `block` has a column per row."""
    found = np.zeros(max(0, len(outputs) - answered), np.float32)
    for k in range(len(vector)):
        add_products(found, vector[k], block[k, answered : len(outputs)], euclidean)
    outputs[answered:, label] = found


@cached_njit()
def add_to_sum(row: np.ndarray, label: int, sums: np.ndarray, counts: np.ndarray, means: np.ndarray) -> None:
    """Add one more row of a class."""
    counts[label] += 1
    for k in range(len(row)):
        sums[label, k] += row[k]
        means[label, k] = sums[label, k] / counts[label]


@cached_njit()
def add_and_compare(
    label: int, row: np.ndarray, sums: np.ndarray, counts: np.ndarray, vectors: np.ndarray, known: np.ndarray,
    block: np.ndarray, outputs: np.ndarray, answered: int, euclidean: bool,
) -> None:  # fmt: skip
    """Add one more row of a class whose vector is the mean of its rows."""
    add_to_sum(row, label, sums, counts, vectors)
    known[label] = True
    compare_with_one(label, vectors[label], block, outputs, answered, euclidean)


@cache
def compiled_mean_update() -> Callable[..., None]:
    """Return `add_and_compare`, compiled for `jit.answer_in_order` on first use."""
    number, matrix = types.int64, types.float32[:, ::1]
    classes = (types.float64[:, ::1], types.int64[::1], types.float32[::1, :], types.bool_[::1])
    held = types.Tuple((matrix, *classes, matrix, matrix, types.bool_))

    @cached_cfunc(types.void(number, number, held))
    def update(k: int, label: int, held: tuple[Any, ...]) -> None:
        rows, sums, counts, vectors, known, block, outputs, euclidean = held
        add_and_compare(label, rows[k], sums, counts, vectors, known, block, outputs, k + 1, euclidean)

    return update


class ClassVectors:
    """A vector for each class that has one; a class that has none can never be the best.

    >>> vectors = ClassVectors(classes=3, features=2, euclidean=False)
    >>> vectors.set_vector(1, np.float32([2, 0]))
    >>> vectors.outputs(np.float32([[1, 5]])).tolist()
    [[-inf, 2.0, -inf]]
    """

    def __init__(self, classes: int, features: int, euclidean: bool) -> None:
        self.euclidean = euclidean
        self._columns = np.zeros((features, classes), np.float32)
        self.vectors = self._columns.T
        self._known = np.zeros(classes, bool)
        self._block = np.zeros((features, CHUNK), np.float32)
        self._outputs = np.zeros((0, classes), np.float32)
        self.n_answered = 0
        """The number of rows of the block that have been answered: their outputs no longer change."""

    def set_vector(self, label: int, vector: np.ndarray) -> None:
        """Replace the vector of a class, also for the rows of the block that were not answered yet."""
        self.vectors[label], self._known[label] = vector, True
        compare_with_one(label, vector, self._block, self._outputs, self.n_answered, self.euclidean)

    def add_to_mean(self, label: int, row: np.ndarray, sums: np.ndarray, counts: np.ndarray) -> None:
        """Add a row to the mean of a class, which is its vector, given the sums and counts of rows."""
        classes = self.vectors, self._known, self._block, self._outputs
        add_and_compare(label, row, sums, counts, *classes, self.n_answered, self.euclidean)

    def mean_updater(
        self, rows: np.ndarray, sums: np.ndarray, counts: np.ndarray
    ) -> tuple[Callable[..., None], tuple[Any, ...]]:
        """Return a compiled `add_to_mean` for the rows of the block, to be called with one label after another."""
        classes = sums, counts, self.vectors, self._known
        return compiled_mean_update(), (rows, *classes, self._block, self._outputs, self.euclidean)

    def set_all(self, vectors: np.ndarray, known: np.ndarray) -> None:
        """Replace the vectors of all classes; the block is over."""
        self.vectors[:], self._known[:] = vectors, known
        self._outputs = self._outputs[:0]

    def outputs(self, rows: np.ndarray) -> np.ndarray:
        """Compare each row with each class; minus infinity where a class is not known."""
        outputs = np.empty((len(rows), len(self._known)), np.float32)
        compare(rows, self._columns, self._known, outputs, self.euclidean)
        return outputs

    def start_chunk(self, rows: np.ndarray) -> np.ndarray:
        """Compare a block of at most `CHUNK` rows; its outputs are kept up to date until the next block."""
        self._block[:, : len(rows)] = rows.T
        self._outputs, self.n_answered = self.outputs(rows), 0
        return self._outputs
