"""The schedule of a stream: the order of corruptions, and their severities.

A schedule is a row of points (c1, s1, c2, s2): first c1 at severity s1, then c2 at s2 on the result. A stream spends a
fixed number of images on each point and starts again after the last point.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import permutations
from typing import NamedTuple

from driftline.corruptions import HOLDOUT, NAMES
from driftline.errors import UserError, unknown_name
from driftline.seeds import Seed
from driftline.streams.test_time.calibration import MAX_SEVERITY, N_LEVELS, AccuracyMatrices, severity_of_level
from driftline.streams.test_time.path import corruption_path
from driftline.types import JsonObject, Settings

EASY_SUBSET = tuple(name for name in NAMES if name != "brightness")
SUBSETS = {
    "easy": EASY_SUBSET,
    "medium": EASY_SUBSET[:-1],
    "hard": ("gaussian_noise", "shot_noise", "impulse_noise", "contrast"),
    "uniform": NAMES,
    "holdout": HOLDOUT,
}
"""Corruptions by name. The first three are what the released generator draws from, in the order that its seeds rely
on; the paper says that all 15 are drawn from (uniform). The four of holdout are for choosing hyper-parameters."""
CORRUPTIONS_3D = (
    *("near_focus", "far_focus", "bit_error", "color_quant", "flash", "fog_3d"),
    *("h265_abr", "h265_crf", "iso_noise", "low_light", "xy_motion_blur", "z_motion_blur"),
)
"""The corruptions of ImageNet-3DCC, which are read from their published files."""
TARGET_ACCURACIES = {"easy": 40.0, "medium": 20.0, "hard": 0.0}
"""Target accuracies in percent of the calibrated model. The stream itself is harder, because of its crops: the paper
measures 34, 17 and 2 percent."""


class CorruptionPair(NamedTuple):
    """What is done to an image: the first corruption at its severity, then the second at its own."""

    first: str
    s1: float
    second: str
    s2: float

    def __str__(self) -> str:
        parts = ((self.first, self.s1), (self.second, self.s2))
        return " + ".join(f"{name} {s:g}" for name, s in parts if s > 0) or "clean"


@dataclass(frozen=True)
class Schedule:
    """Corruption points one after another, or, if `mixed`, one drawn for each image."""

    points: tuple[CorruptionPair, ...]
    mixed: bool = False

    def __post_init__(self) -> None:
        if not self.points:
            raise UserError("a schedule needs at least one corruption")

    def point(self, number: int) -> CorruptionPair:
        """Return the point of this number; after the last one comes the first."""
        return self.points[number % len(self.points)]

    def to_card(self) -> JsonObject:
        """Return the schedule for a card: the pairs of corruptions in order, and each pair's severities once.

        A pair that comes back with other severities has a number behind its name.
        """
        order: list[str] = []
        paths: dict[str, list[list[float]]] = {}
        for first, second, path in _group_by_pair(self.points):
            pair = f"{first} > {second}" if second else first
            name, again = pair, 1
            while paths.setdefault(name, path) != path:
                again += 1
                name = f"{pair} ({again})"
            order.append(name)
        return {"order": order, "paths": paths, "mixed": self.mixed}

    @staticmethod
    def from_card(card: Settings) -> Schedule:
        """Return the schedule that a card describes."""
        points = []
        for name in card["order"]:
            first, _, second = name.partition(" (")[0].partition(" > ")
            points += [CorruptionPair(first, s1, second, s2) for s1, s2 in card["paths"][name]]
        return Schedule(tuple(points), card["mixed"])


def _group_by_pair(points: Sequence[CorruptionPair]) -> Iterator[tuple[str, str, list[list[float]]]]:
    """Yield runs of points with the same pair of corruptions."""
    begin = 0
    for end in range(1, len(points) + 1):
        if end == len(points) or points[end][::2] != points[begin][::2]:
            part = points[begin:end]
            yield part[0].first, part[0].second, [[point.s1, point.s2] for point in part]
            begin = end


def corruption_names(names: str | Sequence[str], known: Sequence[str] = (*NAMES, *HOLDOUT)) -> tuple[str, ...]:
    """Return corruptions from the name of a subset, a text with commas or a list."""
    if isinstance(names, str):
        if names in SUBSETS and set(SUBSETS[names]) <= set(known):
            return SUBSETS[names]
        names = [name.strip() for name in names.split(",") if name.strip()]
    for name in names:
        if name not in known:
            raise unknown_name("corruption", name, [*known, *SUBSETS])
    if len(set(names)) < len(names) or not names:
        raise UserError(f"name each corruption once, and at least one; got {', '.join(names) or 'none'}")
    return tuple(names)


def reference_order(names: Sequence[str], seed: int) -> Iterator[str]:
    """Yield corruptions without end, never twice in a row, as the released generator draws them.

    Its runs have the seeds 43, 44 and 45. A draw that repeats the corruption before it is made again.

    >>> order = reference_order(SUBSETS["easy"], 43)
    >>> next(order), next(order), next(order)
    ('gaussian_noise', 'glass_blur', 'elastic')
    """
    if len(set(names)) < 2:
        raise UserError("an order in which no corruption follows itself needs at least two of them")
    draw = random.Random(seed)
    before = ""
    while True:
        name = draw.choice(names)
        if name != before:
            yield name
            before = name


def constant_difficulty(
    matrices: AccuracyMatrices, target: float, names: Sequence[str], seed: int, points: int, method: str = "mean-cost"
) -> Schedule:
    """Return CCC's schedule: paths of nearly constant accuracy from each corruption to the next.

    `target` is in percent, `method` one of `path.corruption_path`. A path is searched for each pair by itself, as
    in the released generator: where one ends and the next begins, the severity may jump a little.
    """
    finer = matrices.at(max(N_LEVELS, matrices.levels))

    @cache
    def path(first: str, second: str) -> tuple[CorruptionPair, ...]:
        found = corruption_path(finer[first, second], target, method)
        s = [severity_of_level(level, finer.levels) for level in range(finer.levels)]
        return tuple(CorruptionPair(first, s[i], second, s[j]) for i, j in found)

    laid: list[CorruptionPair] = []
    order = reference_order(names, seed)
    first = next(order)
    while len(laid) < points:
        second = next(order)
        laid.extend(path(first, second))
        first = second
    return Schedule(tuple(laid[:points]))


def sequential(names: Sequence[str], severity: float = MAX_SEVERITY) -> Schedule:
    """Return one corruption after another at one severity, as in CIN-C; the stream then starts over."""
    return Schedule(tuple(CorruptionPair(name, severity, "", 0.0) for name in names))


def gradual(names: Sequence[str]) -> Schedule:
    """Return each corruption from severity 1 up to 5 and down to 1 again, then the next."""
    tide = [1.0, 2.0, 3.0, 4.0, 5.0, 4.0, 3.0, 2.0, 1.0]
    return Schedule(tuple(CorruptionPair(name, s, "", 0.0) for name in names for s in tide))


def random_mixture(names: Sequence[str], severity: float = MAX_SEVERITY) -> Schedule:
    """Return a schedule that draws one of the corruptions for every image, at one severity."""
    return Schedule(sequential(names, severity).points, mixed=True)


def random_permutation(names: Sequence[str], number: int, seed: Seed = Seed(0)) -> tuple[str, ...]:
    """Return the order of this number: a permutation drawn for it.

    CIN-C has ten published orders. They are not part of the paper; ours are drawn, and differ from them.
    """
    return tuple(names[k] for k in seed.child("order", number).numpy().permutation(len(names)))


def all_orders(names: Sequence[str]) -> list[tuple[str, ...]]:
    """Return all orders of a few corruptions, such as the 24 of the four held-out ones.

    >>> len(all_orders(SUBSETS["holdout"]))
    24
    """
    return list(permutations(names))
