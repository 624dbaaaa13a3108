"""One vector per class; comparing a sample gives the same digits alone and in a block.

A library for linear algebra chooses the order of a sum by the shape of the block. Here a sum over features always adds
them in the same order.
"""

from __future__ import annotations

import numpy as np

from driftline.jit import cached_njit


@cached_njit()
def compare(rows: np.ndarray, columns: np.ndarray, outputs: np.ndarray, euclidean: bool) -> None:
    """Set the dot product of each row with each column or, if euclidean, minus the squared distance."""
    outputs[:] = 0
    for i in range(len(rows)):
        for k in range(len(columns)):
            feature = rows[i, k]
            if euclidean:
                for j in range(outputs.shape[1]):
                    outputs[i, j] -= (feature - columns[k, j]) * (feature - columns[k, j])
            else:
                for j in range(outputs.shape[1]):
                    outputs[i, j] += feature * columns[k, j]


class ClassVectors:
    """A vector for each known class. The output of an unknown class is minus infinity.

    >>> vectors = ClassVectors(classes=3, features=2, euclidean=False)
    >>> vectors.set_vector(1, np.float32([2, 0]))
    >>> vectors.outputs(np.float32([[1, 5]])).tolist()
    [[-inf, 2.0, -inf]]
    """

    def __init__(self, classes: int, features: int, euclidean: bool) -> None:
        self.euclidean = euclidean
        self._columns = np.zeros((features, classes), np.float32)
        self._unknown = np.ones(classes, bool)

    def set_vector(self, label: int, vector: np.ndarray) -> None:
        """Replace the vector of a class."""
        self._columns[:, label], self._unknown[label] = vector, False

    def set_all(self, vectors: np.ndarray, known: np.ndarray) -> None:
        """Replace the vectors of all classes."""
        self._columns[:], self._unknown[:] = vectors.T, ~known

    def outputs(self, rows: np.ndarray) -> np.ndarray:
        """Compare each row with each class."""
        outputs = np.empty((len(rows), len(self._unknown)), np.float32)
        compare(rows, self._columns, outputs, self.euclidean)
        outputs[:, self._unknown] = -np.inf
        return outputs
