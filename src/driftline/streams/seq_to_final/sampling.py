"""Sampling of rows: the number of each class and sub-class, and the order in which they are taken.

Rows are kept in cells, a list per class: one cell for the class, or one for each of its sub-classes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from driftline.data import Dataset
from driftline.errors import UserError
from driftline.seeds import Seed
from driftline.shifts import Shift
from driftline.types import TRAIN, VALIDATION

RowsByClass = list[list[np.ndarray]]
Counts = list[list[int]]
REFERENCE_SEED = 1007  # of the paper's code
REFERENCE_SEED_LIMIT = 10_000  # it draws the seeds of later steps below this


@dataclass(frozen=True, eq=False)
class SplitRows:
    """Places in the dataset: those to train on, then those to choose by."""

    train: np.ndarray
    valid: np.ndarray

    @property
    def all(self) -> np.ndarray:
        """The rows in the order in which a step has them."""
        return np.concatenate([self.train, self.valid])

    @property
    def split(self) -> np.ndarray:
        """TRAIN or VALIDATION for each of `all`."""
        return np.repeat(np.array([TRAIN, VALIDATION], np.int8), [len(self.train), len(self.valid)])


@dataclass(frozen=True)
class ClassProportions:
    """How much of each class is drawn, and how much of it from each sub-class if sub-classes matter."""

    classes: list[Fraction]
    subclasses: list[list[Fraction]] | None

    @staticmethod
    def of(dataset: Dataset, shifts: Iterable[Shift], divided: bool) -> ClassProportions:
        """Return equal proportions, changed by the shifts so far."""
        k = len(dataset.task.classes)  # type: ignore[attr-defined]
        classes = [Fraction(1, k)] * k
        subclasses = [_initial_shares(len(listed)) for listed in dataset.subclasses or ()] if divided else None
        for shift in shifts:
            classes = shift.class_proportions(classes)
            subclasses = subclasses and [shift.subclass_proportions(shares) for shares in subclasses]
        return ClassProportions(classes, subclasses)

    def counts(self, n: int) -> Counts:
        """Return how many of n samples each cell gives: rounded down, and the last one takes the remainder.

        >>> ClassProportions([Fraction(1, 2)] * 2, [[Fraction(1, 3)] * 3 + [Fraction(0)]] * 2).counts(401)
        [[66, 66, 68, 0], [67, 67, 67, 0]]
        """
        each = _round_counts(n, self.classes)
        if self.subclasses is None:
            return [[count] for count in each]
        return [_round_counts(count, shares) for count, shares in zip(each, self.subclasses, strict=True)]

    def check_enough(self, n: int, least: int, dataset: Dataset, who: str) -> None:
        """Refuse a number of samples that leaves a class with fewer than `least`, or a sub-class with none."""
        for k, counts in enumerate(self.counts(n)):
            present = [count for j, count in enumerate(counts) if self.subclasses is None or self.subclasses[k][j]]
            if sum(counts) < least or min(present) < 1:
                name, few = dataset.task.classes[k], min(sum(counts), min(present))  # type: ignore[attr-defined]
                part = "a sub-class of " if sum(counts) >= least else ""
                raise UserError(
                    f"{who} of {n:,} samples has {few} of {part}class '{name}', too few of {len(self.classes)} classes "
                    f"to learn from or be tested on: at least {least} of each class are needed, and 1 of each sub-class"
                )


def _initial_shares(subclasses: int) -> list[Fraction]:
    """Return equal shares of the first two sub-classes."""
    present = min(2, subclasses)
    return [Fraction(1, present)] * present + [Fraction(0)] * (subclasses - present)


def _round_counts(n: int, shares: list[Fraction]) -> list[int]:
    counts = [int(n * share) for share in shares]
    last = max(k for k, share in enumerate(shares) if share)
    counts[last] += n - sum(counts)
    return counts


def rows_by_class(dataset: Dataset, rows: np.ndarray, divided: bool) -> RowsByClass:
    """Return rows by class and, if `divided`, by sub-class in the order in which they enter."""
    y, groups = dataset.samples.y[rows], dataset.samples.group
    classes = range(len(dataset.task.classes))  # type: ignore[attr-defined]
    if not divided:
        return [[rows[y == k]] for k in classes]
    assert groups is not None
    assert dataset.subclasses is not None
    return [[rows[(y == k) & (groups[rows] == g)] for g in dataset.subclasses[k]] for k in classes]


def flatten_cells(rows: RowsByClass) -> list[np.ndarray]:
    """Return all cells in one list."""
    return [cell for group in rows for cell in group]


def shuffle_cells(rows: RowsByClass, seed: Seed) -> RowsByClass:
    """Shuffle each cell with its own seed, so that the size of one does not affect the rows of another."""
    return [
        [seed.child(k, j).numpy().permutation(cell) for j, cell in enumerate(cells)] for k, cells in enumerate(rows)
    ]


def reference_order(train: RowsByClass, test: RowsByClass, steps: int) -> tuple[list[RowsByClass], RowsByClass]:
    """Return the orders of the paper's code: of each step's training rows, and of the test rows at the last step.

    It seeds numpy's old generator for each step and shuffles in place, class by class.
    """
    later = np.random.RandomState(REFERENCE_SEED)
    seeds = [REFERENCE_SEED, *(int(later.randint(REFERENCE_SEED_LIMIT)) for _ in range(steps - 1))]
    orders, test_order = [], [[cell.copy() for cell in group] for group in test]
    for step, seed in enumerate(seeds):
        random, order = np.random.RandomState(seed), [[cell.copy() for cell in group] for group in train]
        for k, group in enumerate(order):
            for j, cell in enumerate(group):
                random.shuffle(cell)
                if step == steps - 1:
                    random.shuffle(test_order[k][j])
        orders.append(order)
    return orders, test_order


def take_per_class(order: RowsByClass, counts: Counts, dataset: Dataset, who: str) -> RowsByClass:
    """Return the first rows of each cell, or raise an error that names the class with too few."""
    for k, (group, wanted) in enumerate(zip(order, counts, strict=True)):
        for j, (cell, count) in enumerate(zip(group, wanted, strict=True)):
            if count > len(cell):
                what = f"class '{dataset.task.classes[k]}'"  # type: ignore[attr-defined]
                what += f", sub-class {dataset.subclasses[k][j]}" if dataset.subclasses and len(group) > 1 else ""
                raise UserError(f"{who} asks for {count:,} samples of {what}, and there are {len(cell):,}")
    return [[cell[:n] for cell, n in zip(*pair, strict=True)] for pair in zip(order, counts, strict=True)]


def train_valid_split(drawn: RowsByClass, seed: Seed) -> SplitRows:
    """Split each class into four fifths (rounded down) for training and the rest for validation, both shuffled."""
    train: list[np.ndarray] = []
    valid: list[np.ndarray] = []
    for group in drawn:
        sizes = [len(cell) for cell in group]
        for cell, n in zip(group, apportion(4 * sum(sizes) // 5, sizes), strict=True):
            train.append(cell[:n])
            valid.append(cell[n:])
    return SplitRows(shuffle_together(train, seed.child("train")), shuffle_together(valid, seed.child("valid")))


def shuffle_together(parts: Iterable[np.ndarray], seed: Seed) -> np.ndarray:
    """Return the rows of all parts in one random order."""
    return seed.numpy().permutation(np.concatenate(list(parts)))


def apportion(n: int, sizes: list[int]) -> list[int]:
    """Divide n in proportion to sizes, as evenly as whole numbers allow.

    >>> apportion(160, [66, 66, 68])
    [53, 53, 54]
    """
    total = max(sum(sizes), 1)
    parts = [n * size // total for size in sizes]
    most_lacking = sorted(range(len(sizes)), key=lambda k: -(n * sizes[k] % total))
    for k in most_lacking[: n - sum(parts)]:
        parts[k] += 1
    return parts
