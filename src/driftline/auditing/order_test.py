"""Permutation test of order: are periods that are close in time, or in a cycle, more alike than others?

Under the null hypothesis the order of periods says nothing, so rows and columns of the loss matrix may be permuted
together. The statistic is the best fit among kernels of four families; families are balanced by their permutation
ranks, so that the one with the heaviest tail does not decide.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from driftline.auditing.interaction import interaction

PERMUTATIONS = 1999
MAX_ENUMERATED = 6  # with this many periods or fewer, all permutations are used
Family = Literal["abrupt", "temporary", "gradual", "recurring"]
FAMILIES: tuple[Family, ...] = ("abrupt", "temporary", "gradual", "recurring")


@dataclass(frozen=True)
class Kernel:
    """A pattern of which periods are alike."""

    family: Family
    parameters: int
    """Free parameters of the pattern, for the choice between shapes."""
    start: int = 0
    """First period after the change, or of the temporary state, or of the ramp."""
    end: int = 0
    """First period after the temporary state or the ramp."""
    cycle: int = 0


@dataclass(frozen=True)
class OrderTest:
    """Result of an order test."""

    p: float
    family: Family
    """The family with the smallest p."""
    kernel: Kernel
    """The best kernel of that family."""
    smallest_p: float
    """The smallest p-value that this number of periods allows."""


def least_segment(periods: int) -> int:
    """Return the least number of periods before and after a change."""
    return 2 if periods >= 8 else 1


@lru_cache(maxsize=8)
def season_kernels(periods: int) -> tuple[tuple[Kernel, ...], np.ndarray]:
    """Return kernels of a state that holds for several periods of each cycle, such as weekends, as rows."""
    described, matrices = [], []
    for cycle in range(4, periods // 2 + 1):
        for length in range(2, cycle // 2 + 1):
            for start in range(cycle):
                profile = ((np.arange(periods) - start) % cycle < length).astype(float)
                profile -= profile.mean()
                centered = interaction(np.outer(profile, profile))
                described.append(Kernel("recurring", 3, cycle=cycle))
                matrices.append(centered.ravel() / np.linalg.norm(centered))
    return tuple(described), np.array(matrices).reshape(len(matrices), periods**2)


@lru_cache(maxsize=8)
def kernels(periods: int) -> tuple[tuple[Kernel, ...], np.ndarray]:
    """Return all kernels and, as rows, their normalized interactions."""
    t, least = np.arange(periods, dtype=float), least_segment(periods)
    described: list[Kernel] = []
    matrices: list[np.ndarray] = []

    def add(kernel: Kernel, matrix: np.ndarray) -> None:
        centered = interaction(matrix)
        norm = float(np.linalg.norm(centered))
        if norm > 1e-9:
            described.append(kernel)
            matrices.append(centered.ravel() / norm)

    def add_profile(kernel: Kernel, profile: np.ndarray) -> None:
        profile = profile - profile.mean()
        add(kernel, np.outer(profile, profile))

    for start in range(least, periods - least + 1):
        add_profile(Kernel("abrupt", 2, start, periods), (t >= start).astype(float))
    for start in range(least, periods):
        for end in range(start + least, periods - least + 1):
            add_profile(Kernel("temporary", 3, start, end), ((t >= start) & (t < end)).astype(float))
    add_profile(Kernel("gradual", 1, 0, periods), t)
    add(Kernel("gradual", 1, 0, periods), -np.abs(t[:, None] - t))
    for start_time, width in _ramps(periods):
        ends = round(start_time), min(periods, round(start_time + width))
        add_profile(Kernel("gradual", 3, *ends), np.clip((t - start_time) / width, 0, 1))
    for cycle in range(2, periods // 2 + 1):
        kernel = Kernel("recurring", 2, cycle=cycle)
        add(kernel, np.cos(2 * np.pi * (t[:, None] - t) / cycle))
        if cycle > 3:
            add(kernel, ((t[:, None] - t) % cycle == 0).astype(float))
        if cycle > 2:
            for phase in range(cycle):
                add_profile(kernel, (t % cycle == phase).astype(float))
    return tuple(described), np.array(matrices)


def _ramps(periods: int) -> list[tuple[float, float]]:
    """Return start and width of ramps that lie inside the time."""
    ramps = []
    for share in (0.25, 0.4, 0.6, 0.8):
        width = share * periods
        start = 0.0
        while width >= 2 and start + width <= periods + 1e-9:
            ramps.append((start, width))
            start += width / 4
    return ramps


def permutations(size: int, random: np.random.Generator, groups: Sequence[np.ndarray] | None = None) -> np.ndarray:
    """Return the identity and other permutations, as rows; with `groups`, of the members of each group only."""
    if groups is None and size <= MAX_ENUMERATED:
        return np.array(list(itertools.permutations(range(size))))
    order = np.tile(np.arange(size), (PERMUTATIONS + 1, 1))
    for group in [np.arange(size)] if groups is None else groups:
        if len(group) > 1:
            order[1:, group] = random.permuted(np.tile(group, (PERMUTATIONS, 1)), axis=1)
    return order


def order_test(
    likeness: np.ndarray, random: np.random.Generator, groups: Sequence[np.ndarray] | None = None
) -> OrderTest:
    """Test whether order in time explains which periods are alike (`interaction.likeness`).

    `groups`: permute only within these groups of periods, to look for order beyond a known structure.
    """
    size = len(likeness)
    described, patterns = kernels(size)
    order = permutations(size, random, groups)
    permuted = likeness[order[:, :, None], order[:, None, :]].reshape(len(order), -1)
    fit = permuted @ patterns.T
    spread = fit.std(axis=0)
    fit = np.where(spread > 1e-12, (fit - fit.mean(axis=0)) / np.where(spread > 1e-12, spread, 1), 0.0)
    families = np.array([kernel.family for kernel in described])
    present = [family for family in FAMILIES if (families == family).any()]
    best = np.stack([fit[:, families == family].max(axis=1) for family in present], axis=1)
    shares = np.stack([upper_shares(column) for column in best.T], axis=1)
    smallest = shares.min(axis=1)
    index = int(shares[0].argmin())
    inside = np.flatnonzero(families == present[index])
    kernel = described[inside[fit[0, inside].argmax()]]
    p = float((smallest <= smallest[0] + 1e-12).mean())
    return OrderTest(p, present[index], kernel, smallest_p(size))


def upper_shares(values: np.ndarray) -> np.ndarray:
    """Return for each value the share of values that are at least as large."""
    ordered = np.sort(values)
    return 1 - np.searchsorted(ordered, values - 1e-12, side="left") / len(values)


def smallest_p(periods: int) -> float:
    """Return the smallest p of the order test: reversed time is as orderly, so two permutations share the top."""
    return max(2 / math.factorial(min(periods, 12)), 1 / (PERMUTATIONS + 1))
