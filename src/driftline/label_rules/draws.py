"""Random numbers by position: one for each sample of a stream, whatever block or step it comes in."""

from __future__ import annotations

import numpy as np

from driftline.seeds import Seed

BLOCK = 1024  # numbers drawn at once, since samples may come one by one


class PositionDraws:
    """Uniform numbers in [0, 1) by position in a stream.

    >>> draws = PositionDraws(Seed(0))
    >>> together = draws(np.arange(5))
    >>> together[3:].tolist() == PositionDraws(Seed(0))(np.array([3, 4])).tolist()
    True
    """

    def __init__(self, seed: Seed) -> None:
        self._seed = seed
        self._first = 0
        self._block = np.empty(0)

    def __call__(self, positions: np.ndarray) -> np.ndarray:
        """Return the number of each position; positions ascend."""
        if not len(positions):
            return np.empty(0)
        first, end = int(positions[0]), int(positions[-1]) + 1
        if first < self._first or end > self._first + len(self._block):
            random = self._seed.numpy()
            random.bit_generator.advance(first)  # type: ignore[attr-defined]  # PCG64: one number per position
            self._first, self._block = first, random.random(max(end - first, BLOCK))
        drawn: np.ndarray = self._block[positions - self._first]
        return drawn
