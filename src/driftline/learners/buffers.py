"""Buffers of past samples for replay: a uniform sample, or all.

Vitter, "Random Sampling with a Reservoir", ACM Transactions on Mathematical Software 11 (1985), algorithm R.
"""

from __future__ import annotations

import numpy as np

from driftline.io import serialization
from driftline.seeds import Seed
from driftline.types import Inputs, State, Targets, concat_rows, take_rows


class ReservoirBuffer:
    """At most `capacity` samples, at any time a uniform draw without replacement from all that were ever offered.

    The n-th sample offered enters with probability min(1, capacity / n) and then takes the place of a random one.
    Samples are kept as they came: byte images stay bytes. What is kept does not depend on how the samples were cut
    into calls of `add`, nor on how often `draw` was called.

    >>> buffer = ReservoirBuffer(2, Seed(0))
    >>> buffer.add(np.array([[1], [2], [3]], dtype=np.uint8), np.array([0, 1, 0]))
    >>> len(buffer), buffer.n_seen, buffer.x.dtype
    (2, 3, dtype('uint8'))
    """

    transient = frozenset({"_capacity"})

    def __init__(self, capacity: int, seed: Seed) -> None:
        self._capacity = capacity
        self.x: Inputs = None
        self.y: Targets = None
        self.n_seen = 0
        self.insert_rng = seed.child("admission").numpy()
        self.sample_rng = seed.child("recall").numpy()

    def __len__(self) -> int:
        return min(self.n_seen, self._capacity)

    def add(self, x: Inputs, y: np.ndarray) -> None:
        """Offer samples, in this order."""
        kept, nth = len(self), np.arange(self.n_seen, self.n_seen + len(y))
        places = np.where(nth < self._capacity, nth, self.insert_rng.integers(0, nth + 1))
        rows = np.arange(min(self.n_seen + len(y), self._capacity))  # into what was kept, followed by what is offered
        entering = np.flatnonzero(places < self._capacity)
        for new in entering:
            rows[places[new]] = kept + new
        self.x = take_rows(x if self.x is None else concat_rows([self.x, x]), rows)
        self.y = take_rows(y if self.y is None else concat_rows([self.y, y]), rows)
        self.n_seen += len(y)

    def draw(self, n: int) -> tuple[Inputs, Targets]:
        """Inputs and labels of n random samples without replacement, or of all if there are no more than n."""
        rows = self.sample_rng.permutation(len(self))[:n]
        return take_rows(self.x, rows), take_rows(self.y, rows)

    def state(self) -> State:
        return serialization.public_attributes(self)

    def restore(self, saved: State) -> None:
        serialization.restore_attributes(self, saved)


class FullBuffer:
    """A buffer of all samples, in order.

    >>> buffer = FullBuffer()
    >>> buffer.add(np.array([[1.0]]), np.array([0])); buffer.add(np.array([[2.0]]), np.array([1]))
    >>> buffer.x.tolist(), buffer.y.tolist(), len(buffer)
    ([[1.0], [2.0]], [0, 1], 2)
    """

    def __init__(self) -> None:
        self._x: list[Inputs] = []
        self._y: list[np.ndarray] = []

    def __len__(self) -> int:
        return sum(len(y) for y in self._y)

    def add(self, x: Inputs, y: np.ndarray) -> None:
        """Keep samples with their labels; of an array that is part of a larger one, a copy, so that the rest may go."""
        self._x.append(x.copy() if isinstance(x, np.ndarray) and x.base is not None else x)
        self._y.append(y)

    @property
    def x(self) -> Inputs:
        """All inputs, joined once and kept so."""
        self._x = [concat_rows(self._x)]
        return self._x[0]

    @property
    def y(self) -> np.ndarray:
        """All labels."""
        self._y = [np.concatenate(self._y)]
        return self._y[0]

    def state(self) -> State:
        return {"x": self.x, "y": self.y} if self._y else {}

    def restore(self, saved: State) -> None:
        self._x, self._y = ([saved["x"]], [saved["y"]]) if saved else ([], [])
