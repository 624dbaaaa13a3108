"""One vector per class, and samples compared with all of them, alike to the last digit alone and in a block.

A sum over features is always made feature by feature, one after another, whatever is computed beside it. A library for
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

from driftline.compiled import compiled, handed_on
from driftline.training.totals import WIDE, totals

ROWS, LANES = 6, 2 * WIDE
"""How many rows are compared with how many classes at a time: as many sums as a processor has registers for."""
ABREAST, BLOCK = 4 * WIDE, 96
"""How many rows of a block are compared with a new vector at a time, and the most rows in a block."""
MUCH = 1 << 20
"""From so many products of a feature with a tile of classes on, a second thread takes half of the tiles."""
SECOND_THREAD = ThreadPoolExecutor(1, "comparing")
products, distances = totals(ROWS, LANES // WIDE, apart=False), totals(ROWS, LANES // WIDE, apart=True)
products_with_one, distances_to_one = totals(1, ABREAST // WIDE, apart=False), totals(1, ABREAST // WIDE, apart=True)


@compiled()
def compare(
    rows: np.ndarray, vectors: np.ndarray, changed: np.ndarray, known: np.ndarray, tiles: np.ndarray,
    outputs: np.ndarray, first: int, end: int, apart: bool,
) -> None:  # fmt: skip
    """Each row with the classes of some tiles: the dot product or, `apart`, minus the squared distance.

    `tiles[t, k, j]` is feature k of class 16 t + j, once those that have changed have been copied there.
    """
    for t in range(first, end):
        labels = range(t * LANES, min((t + 1) * LANES, len(known)))
        for label in labels:
            if changed[label]:  # copied only now, because the tile is fetched from memory now in any case
                tiles[t, :, label % LANES] = vectors[label]
                changed[label] = False
        for i in range(0, len(rows), ROWS):
            found = outputs[i : i + ROWS, t * LANES : (t + 1) * LANES]
            if apart:
                distances(rows[i : i + ROWS], tiles[t], found)
            else:
                products(rows[i : i + ROWS], tiles[t], found)
        for label in labels:
            if not known[label]:
                outputs[:, label] = -np.inf


@compiled()
def lay_abreast(rows: np.ndarray, lanes: np.ndarray) -> None:
    """Set `lanes[t, k, i]` to feature k of row 32 t + i."""
    for t in range(-(-len(rows) // ABREAST)):
        for k in range(rows.shape[1]):
            for i in range(min(ABREAST, len(rows) - t * ABREAST)):
                lanes[t, k, i] = rows[t * ABREAST + i, k]


@compiled()
def renew(label: int, vector: np.ndarray, lanes: np.ndarray, outputs: np.ndarray, answered: int, apart: bool) -> None:
    """Compare the rows of a block from `answered` on with the vector of one class."""
    found = np.empty((1, ABREAST), np.float32)
    for t in range(answered // ABREAST, -(-len(outputs) // ABREAST)):
        if apart:
            distances_to_one(vector.reshape(1, -1), lanes[t], found)
        else:
            products_with_one(vector.reshape(1, -1), lanes[t], found)
        for i in range(max(answered, t * ABREAST), min(len(outputs), (t + 1) * ABREAST)):
            outputs[i, label] = found[0, i - t * ABREAST]


@compiled()
def replace(
    label: int, vector: np.ndarray, vectors: np.ndarray, changed: np.ndarray, known: np.ndarray,
    lanes: np.ndarray, outputs: np.ndarray, answered: int, apart: bool,
) -> None:  # fmt: skip
    """Another vector for one class."""
    vectors[label] = vector
    changed[label] = known[label] = True
    renew(label, vector, lanes, outputs, answered, apart)


@compiled()
def take_in(row: np.ndarray, label: int, sums: np.ndarray, counts: np.ndarray, means: np.ndarray) -> None:
    """One more row of a class."""
    counts[label] += 1
    for k in range(len(row)):
        sums[label, k] += row[k]
        means[label, k] = sums[label, k] / counts[label]


@compiled()
def move(
    label: int, row: np.ndarray, sums: np.ndarray, counts: np.ndarray, vectors: np.ndarray, changed: np.ndarray,
    known: np.ndarray, lanes: np.ndarray, outputs: np.ndarray, answered: int, apart: bool,
) -> None:  # fmt: skip
    """One more row of a class whose vector is the mean of its rows."""
    take_in(row, label, sums, counts, vectors)
    changed[label] = known[label] = True
    renew(label, vectors[label], lanes, outputs, answered, apart)


@cache
def moving() -> Any:
    """`move` in the shape in which `compiled.in_order` calls it. Made when asked for, because it takes a moment."""
    number, flags, matrix = types.int64, types.bool_[::1], types.float32[:, ::1]
    classes = (types.float64[:, ::1], types.int64[::1], matrix, flags, flags)
    held = types.Tuple((matrix, *classes, types.float32[:, :, ::1], types.float32[:, :], types.bool_))

    @handed_on(types.void(number, number, held))
    def hear(k: int, label: int, held: tuple[Any, ...]) -> None:
        rows, sums, counts, vectors, changed, known, lanes, outputs, apart = held
        move(label, rows[k], sums, counts, vectors, changed, known, lanes, outputs, k + 1, apart)

    return hear


class Exemplars:
    """A vector for each class that has one; a class that has none can never be the best.

    >>> classes = Exemplars(classes=3, features=2, apart=False)
    >>> classes.put(1, np.float32([2, 0]))
    >>> classes.outputs(np.float32([[1, 5]])).tolist()
    [[-inf, 2.0, -inf]]
    """

    def __init__(self, classes: int, features: int, apart: bool) -> None:
        self.apart = apart
        self.vectors = np.zeros((classes, features), np.float32)
        self._changed = np.zeros(classes, bool)
        self._tiles = np.zeros((-(-classes // LANES), features, LANES), np.float32)
        self._known = np.zeros(classes, bool)
        self._lanes = np.zeros((BLOCK // ABREAST, features, ABREAST), np.float32)
        self._block = np.zeros((0, classes), np.float32)
        self.answered = 0
        """So many rows of the block have been answered: their outputs stay as they are."""

    def put(self, label: int, vector: np.ndarray) -> None:
        """From now on this is the vector of one class, also for those rows of the block that were not answered yet."""
        classes = self.vectors, self._changed, self._known
        replace(label, vector, *classes, self._lanes, self._block, self.answered, self.apart)

    def put_mean(self, label: int, row: np.ndarray, sums: np.ndarray, counts: np.ndarray) -> None:
        """The same with the mean of a class as its vector, after one more row; given the sums and counts of rows."""
        classes = self.vectors, self._changed, self._known
        move(label, row, sums, counts, *classes, self._lanes, self._block, self.answered, self.apart)

    def putting_means(self, rows: np.ndarray, sums: np.ndarray, counts: np.ndarray) -> tuple[Any, tuple[Any, ...]]:
        """`put_mean` for the rows of the whole block in their order, to be called with one label after another."""
        classes = sums, counts, self.vectors, self._changed, self._known
        return moving(), (rows, *classes, self._lanes, self._block, self.apart)

    def put_all(self, vectors: np.ndarray, known: np.ndarray) -> None:
        """From now on these are the vectors of all classes, of which these are known; the block is over."""
        self.vectors[:], self._changed[:], self._known[:] = vectors, True, known
        self._block = self._block[:0]

    def outputs(self, rows: np.ndarray) -> np.ndarray:
        """Each row compared with each class; minus infinity where a class is not known."""
        filled = np.zeros((-(-len(rows) // ROWS) * ROWS, rows.shape[1]), np.float32)
        filled[: len(rows)] = rows
        outputs = np.empty((len(filled), len(self._tiles) * LANES), np.float32)
        given = filled, self.vectors, self._changed, self._known, self._tiles, outputs
        end = len(self._tiles)
        half = end // 2 if filled.size * end >= MUCH else 0
        other = SECOND_THREAD.submit(compare, *given, 0, half, self.apart) if half else None
        compare(*given, half, end, self.apart)
        if other:
            other.result()
        return outputs[: len(rows), : len(self._known)]

    def open(self, rows: np.ndarray) -> np.ndarray:
        """The same for a block: its outputs are kept up to date until another is opened."""
        lay_abreast(rows, self._lanes)
        self._block, self.answered = self.outputs(rows), 0
        return self._block
