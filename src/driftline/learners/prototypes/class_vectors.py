"""One vector per class; comparing a sample gives the same digits alone and in a block.

A sum over features always adds them in the same order, whatever the size of the block. A library for
linear algebra chooses its order by the shape of the block, so none is used here.

A block is compared once, with the vectors as they are at its start. When a class gets another vector, those rows of the
block that were not answered yet are compared with it at once.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
from numba import types

from driftline.jit import cached_cfunc, cached_njit
from driftline.learners.prototypes.simd import SIMD_WIDTH, dot_kernel

TILE_ROWS, TILE_COLUMNS = 6, 2 * SIMD_WIDTH
"""How many rows are compared with how many classes at a time: as many sums as a processor has registers for."""
CHUNK_LANES, CHUNK = 4 * SIMD_WIDTH, 96
"""How many rows of a block are compared with a new vector at a time, and the most rows in a block."""
PARALLEL_FROM = 1 << 20
"""From this number of products of a feature with a tile of classes, a second thread takes half of the tiles."""
POOL = ThreadPoolExecutor(1, "comparing")
dot_products, distances = (
    dot_kernel(TILE_ROWS, TILE_COLUMNS // SIMD_WIDTH, euclidean=False),
    dot_kernel(TILE_ROWS, TILE_COLUMNS // SIMD_WIDTH, euclidean=True),
)
dot_products_with_one, distances_to_one = (
    dot_kernel(1, CHUNK_LANES // SIMD_WIDTH, euclidean=False),
    dot_kernel(1, CHUNK_LANES // SIMD_WIDTH, euclidean=True),
)


@cached_njit()
def compare_chunk(
    rows: np.ndarray, vectors: np.ndarray, changed: np.ndarray, known: np.ndarray, tiles: np.ndarray,
    outputs: np.ndarray, first: int, end: int, euclidean: bool,
) -> None:  # fmt: skip
    """Each row with the classes of some tiles: the dot product or, `apart`, minus the squared distance.

    `tiles[t, k, j]` is feature k of class 16 t + j, once those that have changed have been copied there.
    """
    for t in range(first, end):
        labels = range(t * TILE_COLUMNS, min((t + 1) * TILE_COLUMNS, len(known)))
        for label in labels:
            if changed[label]:  # copied only now, because the tile is fetched from memory now in any case
                tiles[t, :, label % TILE_COLUMNS] = vectors[label]
                changed[label] = False
        for i in range(0, len(rows), TILE_ROWS):
            found = outputs[i : i + TILE_ROWS, t * TILE_COLUMNS : (t + 1) * TILE_COLUMNS]
            if euclidean:
                distances(rows[i : i + TILE_ROWS], tiles[t], found)
            else:
                dot_products(rows[i : i + TILE_ROWS], tiles[t], found)
        for label in labels:
            if not known[label]:
                outputs[:, label] = -np.inf


@cached_njit()
def transpose_rows(rows: np.ndarray, lanes: np.ndarray) -> None:
    """Set `lanes[t, k, i]` to feature k of row 32 t + i."""
    for t in range(-(-len(rows) // CHUNK_LANES)):
        for k in range(rows.shape[1]):
            for i in range(min(CHUNK_LANES, len(rows) - t * CHUNK_LANES)):
                lanes[t, k, i] = rows[t * CHUNK_LANES + i, k]


@cached_njit()
def recompute_class(
    label: int, vector: np.ndarray, lanes: np.ndarray, outputs: np.ndarray, answered: int, euclidean: bool
) -> None:
    """Compare the rows of a block from `answered` on with the vector of one class."""
    found = np.empty((1, CHUNK_LANES), np.float32)
    for t in range(answered // CHUNK_LANES, -(-len(outputs) // CHUNK_LANES)):
        if euclidean:
            distances_to_one(vector.reshape(1, -1), lanes[t], found)
        else:
            dot_products_with_one(vector.reshape(1, -1), lanes[t], found)
        for i in range(max(answered, t * CHUNK_LANES), min(len(outputs), (t + 1) * CHUNK_LANES)):
            outputs[i, label] = found[0, i - t * CHUNK_LANES]


@cached_njit()
def replace_vector(
    label: int, vector: np.ndarray, vectors: np.ndarray, changed: np.ndarray, known: np.ndarray,
    lanes: np.ndarray, outputs: np.ndarray, answered: int, euclidean: bool,
) -> None:  # fmt: skip
    """Another vector for one class."""
    vectors[label] = vector
    changed[label] = known[label] = True
    recompute_class(label, vector, lanes, outputs, answered, euclidean)


@cached_njit()
def add_to_sum(row: np.ndarray, label: int, sums: np.ndarray, counts: np.ndarray, means: np.ndarray) -> None:
    """One more row of a class."""
    counts[label] += 1
    for k in range(len(row)):
        sums[label, k] += row[k]
        means[label, k] = sums[label, k] / counts[label]


@cached_njit()
def add_and_recompute(
    label: int, row: np.ndarray, sums: np.ndarray, counts: np.ndarray, vectors: np.ndarray, changed: np.ndarray,
    known: np.ndarray, lanes: np.ndarray, outputs: np.ndarray, answered: int, euclidean: bool,
) -> None:  # fmt: skip
    """One more row of a class whose vector is the mean of its rows."""
    add_to_sum(row, label, sums, counts, vectors)
    changed[label] = known[label] = True
    recompute_class(label, vectors[label], lanes, outputs, answered, euclidean)


@cache
def compiled_mean_update() -> Any:
    """Return `add_and_recompute`, compiled for `jit.answer_in_order` on first use."""
    number, flags, matrix = types.int64, types.bool_[::1], types.float32[:, ::1]
    classes = (types.float64[:, ::1], types.int64[::1], matrix, flags, flags)
    held = types.Tuple((matrix, *classes, types.float32[:, :, ::1], types.float32[:, :], types.bool_))

    @cached_cfunc(types.void(number, number, held))
    def update(k: int, label: int, held: tuple[Any, ...]) -> None:
        rows, sums, counts, vectors, changed, known, lanes, outputs, euclidean = held
        add_and_recompute(label, rows[k], sums, counts, vectors, changed, known, lanes, outputs, k + 1, euclidean)

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
        self.vectors = np.zeros((classes, features), np.float32)
        self._changed = np.zeros(classes, bool)
        self._tiles = np.zeros((-(-classes // TILE_COLUMNS), features, TILE_COLUMNS), np.float32)
        self._known = np.zeros(classes, bool)
        self._lanes = np.zeros((CHUNK // CHUNK_LANES, features, CHUNK_LANES), np.float32)
        self._block = np.zeros((0, classes), np.float32)
        self.n_answered = 0
        """The number of rows of the block that have been answered: their outputs no longer change."""

    def set_vector(self, label: int, vector: np.ndarray) -> None:
        """From now on this is the vector of one class, also for those rows of the block that were not answered yet."""
        classes = self.vectors, self._changed, self._known
        replace_vector(label, vector, *classes, self._lanes, self._block, self.n_answered, self.euclidean)

    def add_to_mean(self, label: int, row: np.ndarray, sums: np.ndarray, counts: np.ndarray) -> None:
        """Add a row to the mean of a class, which is its vector, given the sums and counts of rows."""
        classes = self.vectors, self._changed, self._known
        add_and_recompute(label, row, sums, counts, *classes, self._lanes, self._block, self.n_answered, self.euclidean)

    def mean_updater(self, rows: np.ndarray, sums: np.ndarray, counts: np.ndarray) -> tuple[Any, tuple[Any, ...]]:
        """Return a compiled `add_to_mean` for the rows of the block, to be called with one label after another."""
        classes = sums, counts, self.vectors, self._changed, self._known
        return compiled_mean_update(), (rows, *classes, self._lanes, self._block, self.euclidean)

    def set_all(self, vectors: np.ndarray, known: np.ndarray) -> None:
        """From now on these are the vectors of all classes, of which these are known; the block is over."""
        self.vectors[:], self._changed[:], self._known[:] = vectors, True, known
        self._block = self._block[:0]

    def outputs(self, rows: np.ndarray) -> np.ndarray:
        """Each row compared with each class; minus infinity where a class is not known."""
        filled = np.zeros((-(-len(rows) // TILE_ROWS) * TILE_ROWS, rows.shape[1]), np.float32)
        filled[: len(rows)] = rows
        outputs = np.empty((len(filled), len(self._tiles) * TILE_COLUMNS), np.float32)
        given = filled, self.vectors, self._changed, self._known, self._tiles, outputs
        end = len(self._tiles)
        half = end // 2 if filled.size * end >= PARALLEL_FROM else 0
        other = POOL.submit(compare_chunk, *given, 0, half, self.euclidean) if half else None
        compare_chunk(*given, half, end, self.euclidean)
        if other:
            other.result()
        return outputs[: len(rows), : len(self._known)]

    def start_chunk(self, rows: np.ndarray) -> np.ndarray:
        """The same for a block: its outputs are kept up to date until another is opened."""
        transpose_rows(rows, self._lanes)
        self._block, self.n_answered = self.outputs(rows), 0
        return self._block
