"""Row effects, column effects and interaction of a square loss matrix L[t, tau]: model t tested in period tau.

Row effects say how bad a model is everywhere, column effects how hard a period is for every model. What is left, the
interaction, says which periods are alike. The diagonal is left out, because its noise differs from that of other cells.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Effects(NamedTuple):
    """The additive part of a matrix."""

    mean: float
    rows: np.ndarray
    columns: np.ndarray


def effects(loss: np.ndarray) -> Effects:
    """Return the least-squares fit of mean + row + column to all cells off the diagonal.

    >>> additive = np.add.outer([0.0, 3.0, -3.0], [1.0, 0.0, -1.0])
    >>> effects(additive).rows.round(12).tolist()
    [0.0, 3.0, -3.0]
    """
    size = len(loss)
    off = loss - np.diag(np.diag(loss))
    total, rows, columns = off.sum(), off.sum(axis=1), off.sum(axis=0)
    scale = size * (size - 2)
    row_effects = ((size - 1) * rows + columns - total) / scale
    column_effects = ((size - 1) * columns + rows - total) / scale
    return Effects(float(total / (size * (size - 1))), row_effects, column_effects)


def interaction(loss: np.ndarray) -> np.ndarray:
    """Return what row and column effects do not explain; 0 on the diagonal."""
    mean, rows, columns = effects(loss)
    left = loss - mean - rows[:, None] - columns
    np.fill_diagonal(left, 0.0)
    return np.asarray(left)


def likeness(loss: np.ndarray) -> np.ndarray:
    """Return the symmetric matrix of how alike two periods are: high where each one's model does well in the other."""
    left = interaction(loss)
    return np.asarray(-(left + left.T) / 2)


def doubly_centered(loss: np.ndarray) -> np.ndarray:
    """Return the matrix without its row and column means, diagonal included."""
    return np.asarray(loss - loss.mean(axis=0) - loss.mean(axis=1)[:, None] + loss.mean())
