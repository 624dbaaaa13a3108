"""The shape of a change: abrupt at known periods, temporary, gradual, or recurring with a cycle.

Shapes are compared by a criterion with T independent pieces, because noise comes per period and not per cell. Use it
only where the order test is significant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

import numpy as np

from driftline.auditing.order_test import Kernel, OrderTest, kernels, least_segment, order_test, season_kernels

NEARBY = 10.0  # fewer cuts win if their score is this close to the best
NO_ORDER_LEFT = 0.05
FURTHER_P = 0.01  # to claim a second structure
MAX_CUTS = 4
Kind = Literal["abrupt", "temporary", "gradual", "recurring", "uncertain"]


@dataclass(frozen=True)
class Cut:
    """A change: before the first row of a period, or somewhere inside of it."""

    period: int
    inside: bool = False


@dataclass(frozen=True)
class Shape:
    """The shape of a change over time."""

    kind: Kind
    cuts: tuple[Cut, ...] = ()
    """Of abrupt changes; begin and end of a temporary one."""
    start: int | None = None
    """First and last period of a gradual change."""
    end: int | None = None
    cycle: int | None = None
    further: OrderTest | None = field(default=None)
    """Order that is left within the segments or phases, if it is significant."""

    @property
    def boundaries(self) -> tuple[int, ...]:
        """The periods that begin with a new state."""
        return tuple(cut.period for cut in self.cuts)


class BlockFit:
    """Least-squares fits of matrices that are constant on blocks of segments."""

    def __init__(self, likeness: np.ndarray) -> None:
        self.size = len(likeness)
        upper = np.triu(likeness, 1)
        self.total = float((upper**2).sum())
        self._sums = _prefix(upper)
        self._counts = _prefix(np.triu(np.ones_like(upper), 1))

    def block(self, rows: tuple[int, int], columns: tuple[int, int]) -> tuple[float, float]:
        """Return sum and number of the cells above the diagonal in a block."""
        (a, b), (c, d) = rows, columns
        return tuple(float(p[b, d] - p[a, d] - p[b, c] + p[a, c]) for p in (self._sums, self._counts))  # type: ignore[return-value]

    def mean(self, rows: tuple[int, int], columns: tuple[int, int]) -> float:
        """Return the mean of a block; NaN if it is empty."""
        total, count = self.block(rows, columns)
        return total / count if count else float("nan")

    def rss(self, cuts: Sequence[int]) -> float:
        """Return the residual sum of squares with these boundaries of segments."""
        ends = segments(self.size, cuts)
        explained = 0.0
        for k, rows in enumerate(ends):
            for columns in ends[k:]:
                total, count = self.block(rows, columns)
                explained += total**2 / count if count else 0.0
        return self.total - explained

    def score(self, rss: float, parameters: int) -> float:
        """Return the criterion; lower is better."""
        cells, least = self.size * (self.size - 1) / 2, 1e-12 * max(self.total, 1e-300)
        return float(self.size * np.log(max(rss, least) / cells) + parameters * np.log(self.size))

    def best_cuts(self) -> list[tuple[int, ...]]:
        """Return the best boundaries for 1, 2, 3 and 4 cuts: the first two by trying all, the others greedily."""
        least = least_segment(self.size)
        places = range(least, self.size - least + 1)
        best: list[tuple[int, ...]] = [min(((c,) for c in places), key=self.rss)]
        pairs = [(a, b) for a in places for b in places if a < b]
        if pairs:
            best.append(min(pairs, key=self.rss))
        while len(best) < MAX_CUTS and len(best) >= 2:
            more = [tuple(sorted((*best[-1], c))) for c in places if c not in best[-1]]
            if not more:
                break
            best.append(min(more, key=self.rss))
        return best


def segments(size: int, cuts: Sequence[int]) -> list[tuple[int, int]]:
    """Return first and end period of each segment.

    >>> segments(6, [2, 5])
    [(0, 2), (2, 5), (5, 6)]
    """
    ends = [0, *cuts, size]
    return list(pairwise(ends))


def find_shape(likeness: np.ndarray, test: OrderTest, random: np.random.Generator) -> Shape:
    """Return the shape with the lowest score; uncertain if no shape is better than none."""
    size, fit = len(likeness), BlockFit(likeness)
    by_cuts = {cuts: fit.score(fit.rss(cuts), len(cuts) + len(cuts) * (len(cuts) + 1) // 2) for cuts in fit.best_cuts()}
    kernel, kernel_score = _best_kernel(likeness, fit)
    none = fit.score(fit.total, 0)
    best_cuts = min(by_cuts, key=lambda cuts: by_cuts[cuts])
    if none <= min(by_cuts[best_cuts], kernel_score):
        return Shape("uncertain", cycle=test.kernel.cycle or None)
    if kernel_score < by_cuts[best_cuts] and kernel.family in ("gradual", "recurring"):
        return _kernel_shape(likeness, kernel, random)
    if kernel_score < by_cuts[best_cuts]:
        boundaries: tuple[int, ...] = (kernel.start,) if kernel.family == "abrupt" else (kernel.start, kernel.end)
    else:
        boundaries = _fewest(likeness, by_cuts, best_cuts, random)
    return _cut_shape(likeness, fit, boundaries, random, size)


def _best_kernel(likeness: np.ndarray, fit: BlockFit) -> tuple[Kernel, float]:
    families = kernels(len(likeness)), season_kernels(len(likeness))
    described = [kernel for family, _ in families for kernel in family]
    overlap = np.maximum(np.concatenate([patterns @ likeness.ravel() for _, patterns in families]), 0)
    scores = [fit.score(fit.total - o**2 / 2, k.parameters) for o, k in zip(overlap, described, strict=True)]
    best = int(np.argmin(scores))
    return described[best], scores[best]


def _kernel_shape(likeness: np.ndarray, kernel: Kernel, random: np.random.Generator) -> Shape:
    if kernel.family == "gradual":
        return Shape("gradual", start=kernel.start, end=kernel.end - 1)
    phases = [np.arange(f, len(likeness), kernel.cycle) for f in range(kernel.cycle)]
    return Shape("recurring", cycle=kernel.cycle, further=_further(likeness, phases, random))


def _fewest(
    likeness: np.ndarray, by_cuts: dict[tuple[int, ...], float], best: tuple[int, ...], random: np.random.Generator
) -> tuple[int, ...]:
    """Return the fewest cuts that score close to the best and leave no order within their segments."""
    for cuts, score in by_cuts.items():
        if len(cuts) >= len(best):
            break
        if score <= by_cuts[best] + NEARBY:
            groups = inner_periods(len(likeness), [Cut(c) for c in cuts])
            if order_test(likeness, random, groups).p > NO_ORDER_LEFT:
                return cuts
    return best


def inner_periods(size: int, cuts: Sequence[Cut]) -> list[np.ndarray]:
    """Return the periods of each segment that are not next to a cut, and thus not mixed."""
    mixed = {cut.period for cut in cuts} | {cut.period - 1 for cut in cuts}
    mixed |= {cut.period + 1 for cut in cuts if cut.inside}
    parts = segments(size, [cut.period for cut in cuts])
    return [np.array([t for t in range(*part) if t not in mixed], dtype=int) for part in parts]


def _cut_shape(
    likeness: np.ndarray, fit: BlockFit, boundaries: tuple[int, ...], random: np.random.Generator, size: int
) -> Shape:
    cuts: list[Cut] = []
    k = 0
    while k < len(boundaries):
        inside = k + 1 < len(boundaries) and boundaries[k + 1] == boundaries[k] + 1
        inside = inside and not _returns(fit, size, boundaries[k], boundaries[k + 1])
        cuts.append(Cut(boundaries[k], inside))
        k += 2 if inside else 1
    returns = len(cuts) == 2 and _returns(fit, size, cuts[0].period, cuts[1].period)
    further = _further(likeness, inner_periods(size, cuts), random)
    return Shape("temporary" if returns else "abrupt", cuts=tuple(cuts), further=further)


def _returns(fit: BlockFit, size: int, start: int, end: int) -> bool:
    """Return whether the state after `end` is more like the one before `start` than like the one between."""
    before, between, after = (0, start), (start, end), (end, size)
    same = np.nanmean([fit.mean(before, before), fit.mean(after, after)])
    other = np.nanmean([fit.mean(before, between), fit.mean(between, after)])
    return bool(fit.mean(before, after) > (same + other) / 2)


def _further(likeness: np.ndarray, groups: Sequence[np.ndarray], random: np.random.Generator) -> OrderTest | None:
    if sum(len(group) > 2 for group in groups) == 0:
        return None
    test = order_test(likeness, random, groups)
    return test if test.p <= FURTHER_P else None


def _prefix(matrix: np.ndarray) -> np.ndarray:
    return np.pad(matrix, ((1, 0), (1, 0))).cumsum(axis=0).cumsum(axis=1)
