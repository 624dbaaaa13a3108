"""Buffers of past samples for replay: a uniform sample, all, or each input once.

Vitter, "Random Sampling with a Reservoir", ACM Transactions on Mathematical Software 11 (1985), algorithm R.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np

from driftline.io.serialization import Stateful
from driftline.seeds import Seed
from driftline.types import Inputs, Samples, State, Targets, concat_rows, take_rows


class ReservoirBuffer(Stateful):
    """At most `capacity` samples, at any time a uniform draw without replacement from all that were ever offered.

    The n-th sample offered enters with probability min(1, capacity / n) and then takes the place of a random one.
    Samples are stored as they came: byte images stay bytes. The content does not depend on how samples are divided
    into calls of `add`, nor on the number of calls of `draw`.

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
        rows = np.arange(min(self.n_seen + len(y), self._capacity))  # of the buffer, followed by the new samples
        entering = np.flatnonzero(places < self._capacity)
        for new in entering:
            rows[places[new]] = kept + new
        self.x = take_rows(x if self.x is None else concat_rows([self.x, x]), rows)
        self.y = take_rows(y if self.y is None else concat_rows([self.y, y]), rows)
        self.n_seen += len(y)

    def draw(self, n: int) -> tuple[Inputs, Targets]:
        """Return inputs and labels of n random samples without replacement, or of all if there are no more than n."""
        rows = self.sample_rng.permutation(len(self))[:n]
        return take_rows(self.x, rows), take_rows(self.y, rows)


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
        """Add samples with their labels. A view is copied, so that the array it belongs to can be freed."""
        self._x.append(x.copy() if isinstance(x, np.ndarray) and x.base is not None else x)
        self._y.append(y)

    @property
    def x(self) -> Inputs:
        """All inputs."""
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


class UniqueBuffer(Stateful):
    """All samples that were added, each input once, in the order in which inputs were first added.

    An input that comes again keeps its place and takes its latest label. Inputs are equal if their bytes or their
    texts are. Samples are stored as they came: byte images stay bytes.

    >>> buffer = UniqueBuffer()
    >>> buffer.add(["who ?", "where ?"], np.array(["Ann", "Rome"], dtype=object))
    >>> buffer.add(["when ?", "who ?"], np.array(["now", "Bob"], dtype=object))
    >>> buffer.x, buffer.y.tolist()
    (['who ?', 'where ?', 'when ?'], ['Bob', 'Rome', 'now'])
    """

    transient = frozenset({"_positions"})

    def __init__(self) -> None:
        self.x: Inputs = None
        self.y: Targets = None
        self._positions: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._positions)

    def add(self, x: Inputs, y: np.ndarray) -> None:
        """Add samples."""
        known = len(self)
        latest = {self._positions.setdefault(key, len(self._positions)): row for row, key in enumerate(input_hashes(x))}
        fresh = np.array([latest[place] for place in sorted(latest) if place >= known], int)
        if len(fresh):
            self.x = take_rows(x, fresh) if self.x is None else concat_rows([self.x, take_rows(x, fresh)])
        # Always a new array: inputs and saved states must not change.
        self.y = np.concatenate([part for part in (self.y, y[fresh]) if part is not None])
        again = {place: row for place, row in latest.items() if place < known}
        self.y[list(again)] = y[list(again.values())]

    def restore(self, saved: State) -> None:
        super().restore(saved)
        self._positions = {} if self.x is None else {key: place for place, key in enumerate(input_hashes(self.x))}


Buffer = Samples | UniqueBuffer


def input_hashes(x: Inputs) -> Iterator[bytes]:
    """Yield a hash of each input."""
    for row in x:
        content = row.encode() if isinstance(row, str) else np.ascontiguousarray(row).tobytes()
        yield hashlib.blake2b(content, digest_size=16).digest()
