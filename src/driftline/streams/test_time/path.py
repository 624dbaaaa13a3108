"""Paths from one corruption to the next along which a fixed model has about constant accuracy.

A matrix holds the accuracy of that model for two corruptions, entry [i, j] at their levels i and j (see
`calibration`). A path begins at some [i, 0] with i >= 1, moves by lowering i or raising j, one level at a time,
and ends as soon as i is 0. Matrix and target are in the same unit, as a rule percent.

Press et al., "RDumb: A simple approach that questions our progress in continual test-time adaptation", NeurIPS 2023,
Appendix B. What the appendix prints and what the released generator does differ in one place: the appendix would also
begin at [0, 0], the generator does not, and neither do we.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from driftline.errors import UserError, unknown_name

LevelPath = tuple[tuple[int, int], ...]
"""Pairs of levels, the first corruption's and the second's."""


def corruption_path(matrix: np.ndarray, target: float, method: str = "mean-cost") -> LevelPath:
    """Return the path whose accuracy is closest to a target, both ends included.

    mean-cost: the search of the released generator. It looks at the mean accuracy from a point to the end alone, so
    that points far above the target may be paid for with points far below it.
    least-squares: the path with the smallest mean of squared deviations from the target, of all paths there are. It
    is the mean and not the sum, because a sum would prefer short paths to good ones.

    >>> corruption_path(np.array([[80, 60, 20], [60, 40, 10], [40, 20, 5]]), 40)
    ((2, 0), (2, 1), (1, 1), (0, 1))
    """
    if method not in METHODS:
        raise unknown_name("way to search a path", method, METHODS)
    return METHODS[method](_checked(matrix), float(target))


def _checked(matrix: np.ndarray) -> np.ndarray:
    matrix = np.asarray(matrix, float)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or len(matrix) < 2:
        raise UserError(f"a path is searched in a square matrix of accuracies; this one has the shape {matrix.shape}")
    if not np.isfinite(matrix).all():
        raise UserError("a path is searched in a matrix of accuracies, and this one has entries that are not numbers")
    return matrix


def _mean_cost(matrix: np.ndarray, target: float) -> LevelPath:
    """Keep at every point the better of its two successors' paths, by the mean from the point to the end.

    A tie goes to the successor with the higher second level, and between starts to the lower one. This is not the best
    path by its own cost: a suffix that is best for one point need not be best for the point before it.
    """
    last = len(matrix) - 1
    total, points = matrix.copy(), np.ones(matrix.shape, int)
    falls = np.zeros(matrix.shape, bool)
    for i in range(1, last + 1):
        for j in range(last, -1, -1):
            follow = [(i, j + 1)] if j < last else []
            follow += [(i - 1, j)]
            costs = [abs((matrix[i, j] + total[to]) / (points[to] + 1) - target) for to in follow]
            chosen = follow[int(np.argmin(costs))]  # the first of equals
            total[i, j] += total[chosen]
            points[i, j] += points[chosen]
            falls[i, j] = chosen == (i - 1, j)
    start = 1 + int(np.argmin(np.abs(total[1:, 0] / points[1:, 0] - target)))
    return _trace(start, lambda i, j: bool(falls[i, j]))


def _least_squares(matrix: np.ndarray, target: float) -> LevelPath:
    """Find the best path between each start and end by dynamic programming, then the best pair of ends.

    All paths between the same two ends have the same number of points, so that the smallest sum between them is also
    the smallest mean. Ties go as in the search by mean cost, and between ends to the lower one.
    """
    last = len(matrix) - 1
    square = (matrix - target) ** 2
    best = np.full((last + 1, last + 1, last + 1), np.inf)  # the last axis is where the path ends
    best[0, np.arange(last + 1), np.arange(last + 1)] = square[0]
    falls = np.zeros(best.shape, bool)
    for i in range(1, last + 1):
        for j in range(last, -1, -1):
            rising = best[i, j + 1] if j < last else np.full(last + 1, np.inf)
            falls[i, j] = best[i - 1, j] < rising
            best[i, j] = square[i, j] + np.minimum(best[i - 1, j], rising)
    ends = np.arange(last + 1)
    mean = best[1:, 0] / (ends[1:, None] + ends[None, :] + 1)
    start, end = np.unravel_index(int(np.argmin(mean)), mean.shape)
    return _trace(int(start) + 1, lambda i, j: bool(falls[i, j, end]))


def _trace(start: int, falls: Callable[[int, int], bool]) -> LevelPath:
    i, j = start, 0
    path = [(i, j)]
    while i:
        i, j = (i - 1, j) if falls(i, j) else (i, j + 1)
        path.append((i, j))
    return tuple(path)


METHODS: dict[str, Callable[[np.ndarray, float], LevelPath]] = {
    "mean-cost": _mean_cost,
    "least-squares": _least_squares,
}
