"""Orders of arrival in an open world: shuffled, or with classes that come and go.

NED's sequences are one uniform shuffle: nothing drifts, and almost all classes have been seen early. The other orders
go beyond the paper. Each has one number, written behind its name: `drifting 0.2` or `drifting:0.2`.

- `drifting W`: every class has a center in time, and its samples lie around it with the standard deviation W; the
  stream is 1 long.
- `bursts N`: the samples of a class come in runs of N, the last of which may be shorter.
- `recurring V`: every class comes V times and is away in between, each time about as long as it was there. When its
  first visit begins is drawn; a visit that the end of the stream cuts off is made up for at its beginning.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from driftline.errors import UserError, unknown_name

ArrivalFunction = Callable[[np.ndarray, float, np.random.Generator], np.ndarray]
PRESENT_FRACTION = 0.5  # of the time, in a recurring class


def uniform(labels: np.ndarray, number: float, random: np.random.Generator) -> np.ndarray:
    """Return a random permutation."""
    return random.permutation(len(labels))


def drifting(labels: np.ndarray, width: float, random: np.random.Generator) -> np.ndarray:
    """Return the order of times that are normally distributed around the center of each class."""
    center = random.random(labels.max() + 1)
    return np.argsort(center[labels] + width * random.standard_normal(len(labels)), kind="stable")


def bursts(labels: np.ndarray, length: float, random: np.random.Generator) -> np.ndarray:
    """Return a random order of whole runs."""
    by_class = np.argsort(labels, kind="stable")
    sizes = np.bincount(labels)
    place = np.arange(len(labels)) - np.repeat(np.cumsum(sizes) - sizes, sizes)  # of each sample within its class
    run = np.cumsum(place % int(length) == 0) - 1
    turn = random.permutation(run[-1] + 1)
    return by_class[np.argsort(turn[run], kind="stable")]


def recurring(labels: np.ndarray, visits: float, random: np.random.Generator) -> np.ndarray:
    """Return the order of times that are drawn from the visits of each class."""
    begin = random.random(labels.max() + 1)
    visit = random.integers(0, int(visits), len(labels))
    time = (begin[labels] + visit + PRESENT_FRACTION * random.random(len(labels))) / int(visits)
    return np.argsort(time % 1, kind="stable")


ARRIVALS: dict[str, tuple[ArrivalFunction, float | None]] = {
    "uniform": (uniform, None),
    "drifting": (drifting, 0.2),
    "bursts": (bursts, 10.0),
    "recurring": (recurring, 3.0),
}
"""Each order with its number, if it has one, when none is given."""


def arrange(labels: np.ndarray, order: str, random: np.random.Generator) -> np.ndarray:
    """Return the positions of these samples in the order of their arrival.

    >>> places = arrange(np.array([0, 0, 0, 1, 1, 1]), "bursts 3", np.random.default_rng(0))
    >>> sorted(places.tolist()), len(set(places[:3] // 3))
    ([0, 1, 2, 3, 4, 5], 1)
    """
    arrange, number = parse_arrival(order)
    return arrange(labels, number, random)


def parse_arrival(order: str) -> tuple[ArrivalFunction, float]:
    """Return the function of an arrival order, and its number."""
    name, *given = str(order).replace(":", " ").split() or [""]
    if name not in ARRIVALS:
        raise unknown_name("order of an open world", name, ARRIVALS)
    arrange, usual = ARRIVALS[name]
    if len(given) > (usual is not None):
        raise UserError(f"the order '{order}': {name} takes {'no' if usual is None else 'one'} number")
    try:
        number = float(given[0]) if given else usual or 0.0
    except ValueError:
        raise UserError(f"the order '{order}': '{given[0]}' is not a number; write '{name} {usual:g}'") from None
    if usual is not None and not _check_number(name, number):
        least = "a number above 0" if name == "drifting" else "a whole number from 1"
        raise UserError(f"the order '{order}': {name} needs {least}, such as {usual:g}")
    return arrange, number


def _check_number(name: str, number: float) -> bool:
    return 0 < number < np.inf and (name == "drifting" or number.is_integer())
