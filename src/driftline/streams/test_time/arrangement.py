"""Order of corruptions and images in streams with correlated labels, or corruptions that follow a Markov chain.

shuffled: the labels of a point come as its images are drawn. chain: they follow a Markov chain of their own, and each
is the next image of its class; no image of a point repeats before all of its class have occurred. practical: the images
of a point are those of `shuffled`, in the order of RoTTA's practical stream (Yuan, Xie and Li, "Robust Test-Time
Adaptation in Dynamic Scenarios", CVPR 2023): the images of each class are divided into as many slots as there are
classes, at most 100, with shares from a Dirichlet distribution; within a slot the classes come one after another in
random order. As each class is one block of its slot, labels are correlated at every concentration. RoTTA takes the
images in the order of their file; here it is random.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from driftline.errors import UserError
from driftline.seeds import Seed
from driftline.streams.test_time.markov import MarkovChain
from driftline.streams.test_time.schedule import Schedule
from driftline.streams.test_time.stream import Places
from driftline.types import JsonObject

LabelOrder = Literal["shuffled", "chain", "practical"]
MAX_SLOTS = 100


class Images(Protocol):
    """A stream of images that can be put into another order."""

    @property
    def n_images(self) -> int: ...
    @property
    def images_per_point(self) -> int: ...
    @property
    def schedule(self) -> Schedule: ...
    @property
    def seed(self) -> Seed: ...

    def points(self, positions: np.ndarray) -> np.ndarray:
        """Return the number of the point of each position."""

    def rows(self, positions: np.ndarray) -> np.ndarray:
        """Return the source image of each position."""

    def labels(self, point: int) -> np.ndarray:
        """Return the labels of the source images of a point."""


@dataclass(frozen=True)
class Arrangement:
    """The order of corruptions and of labels."""

    label_order: LabelOrder = "shuffled"
    classes: MarkovChain | None = None
    """chain: the chain of labels."""
    concentration: float | None = None
    """practical: of the Dirichlet distribution."""
    domains: MarkovChain | None = None
    """The chain of corruptions; None: as scheduled."""

    def places(self, stream: Images) -> Places:
        """Return the point and the source image of each position of a stream."""
        positions = np.arange(stream.n_images)
        points = stream.points(positions)
        if self.domains is not None:
            points = self.domains.states(stream.n_images, stream.seed.child("domains"))
        if self.classes is not None:
            return Places(points, self._by_class(stream, points, self.classes))
        rows = stream.rows(positions)
        if self.concentration is not None:
            for start in range(0, len(rows), stream.images_per_point):
                part = rows[start : start + stream.images_per_point]
                rng = stream.seed.child("labels", start // stream.images_per_point).numpy()
                part[:] = part[practical_order(stream.labels(int(points[start]))[part], self.concentration, rng)]
        return Places(points, rows)

    def _by_class(self, stream: Images, points: np.ndarray, classes: MarkovChain) -> np.ndarray:
        """Return images whose labels follow the chain."""
        wanted = self._wanted(classes, stream, points)
        rows = np.empty(len(points), np.int64)
        order = np.argsort(points, kind="stable")
        for here in np.split(order, np.flatnonzero(np.diff(points[order])) + 1):
            point = int(points[here[0]])
            rng = stream.seed.child("images", point).numpy()
            rows[here] = next_of_class(wanted[here], stream.labels(point), rng)
        return rows

    def _wanted(self, classes: MarkovChain, stream: Images, points: np.ndarray) -> np.ndarray:
        """Return the class of each position; one class after another begins anew with each block of a corruption."""
        seed, in_blocks = stream.seed.child("labels"), not stream.schedule.mixed or _is_sorted(self.domains)
        if classes.correlation < 1 or not in_blocks:
            return classes.states(len(points), seed)
        begins = np.flatnonzero(np.diff(points, prepend=-1))
        return np.concatenate([classes.states(n, seed) for n in np.diff(begins, append=len(points))])

    def to_card(self) -> JsonObject:
        """Return the entries of the card."""
        card: JsonObject = {"label_order": self.label_order}
        if self.concentration is not None:
            card["label_concentration"] = self.concentration
        for name, chain in (("class_chain", self.classes), ("domain_chain", self.domains)):
            if chain is not None:
                shares, stay = (np.round(values, 6).tolist() for values in (chain.shares, chain.stay))
                card[name] = {"kind": chain.kind, "shares": shares, "stay": stay}
        return card


def _is_sorted(chain: MarkovChain | None) -> bool:
    return chain is not None and chain.correlation == 1


def next_of_class(wanted: np.ndarray, labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return for each wanted class the next of its images, in a random order that repeats.

    >>> next_of_class(np.array([1, 1, 0, 1]), np.array([0, 1, 1]), np.random.default_rng(0)).tolist()
    [2, 1, 0, 2]
    """
    mixed = rng.permutation(len(labels))
    mixed = mixed[np.argsort(labels[mixed], kind="stable")]
    counts = np.bincount(labels, minlength=wanted.max() + 1)
    if missing := np.flatnonzero(counts[wanted] == 0).tolist():
        raise UserError(f"label_order=chain: class {wanted[missing[0]]} of the data has no image in the stream")
    order = np.argsort(wanted, kind="stable")
    _, first, sizes = np.unique(wanted[order], return_index=True, return_counts=True)
    occurrence = np.empty(len(wanted), np.int64)
    occurrence[order] = np.arange(len(wanted)) - np.repeat(first, sizes)
    starts = np.cumsum(counts) - counts
    return np.asarray(mixed[starts[wanted] + occurrence % counts[wanted]])


def practical_order(labels: np.ndarray, concentration: float, rng: np.random.Generator) -> np.ndarray:
    """Return the order of images, given in random order, in the practical stream."""
    classes = np.unique(labels)
    slots = min(len(classes), MAX_SLOTS)
    parts = []
    for label in classes:
        own = np.flatnonzero(labels == label)
        ends = np.cumsum(rng.dirichlet(np.full(slots, concentration)))[:-1]
        parts.append(np.split(own, (ends * len(own)).astype(int)))
    return np.concatenate([parts[k][slot] for slot in range(slots) for k in rng.permutation(len(classes))])
