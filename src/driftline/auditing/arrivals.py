"""When labels arrive in a replay: which rows of earlier periods can train the model that predicts a period.

A label can be used for a period if it became known before the period's first row. With a delay in periods, all labels
of a period arrive together; with times of their own, a period counts as known once half of its labels are, without
those that never arrive.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from driftline.types import Samples


class Training(NamedTuple):
    """The rows that train a model: those of some periods whose labels are known before another one."""

    periods: tuple[int, ...]
    before: int


@dataclass(frozen=True, eq=False)
class Arrivals:
    """The rows of each period, and when their labels arrive."""

    periods: tuple[Samples, ...]
    due: tuple[np.ndarray, ...]
    """By period and row: the first period that can be predicted with the label; above the number of periods: none."""

    @cached_property
    def known_from(self) -> tuple[int, ...]:
        """By period: the first one that can be predicted with half of the labels that ever arrive."""
        never = len(self.periods) + 1
        known = []
        for due in self.due:
            arriving = np.sort(due[due < never]) if (due < never).any() else due
            known.append(int(arriving[(len(arriving) - 1) // 2]))
        return tuple(known)

    def newest(self, before: int) -> int:
        """Return the latest period that is known before another one; -1 if none is."""
        return max((j for j, known in enumerate(self.known_from) if known <= before), default=-1)

    def arriving(self, before: int) -> list[int]:
        """Return the periods that become known just before another one."""
        return [j for j, known in enumerate(self.known_from) if known == before]

    def is_known(self, period: int, before: int) -> np.ndarray:
        """Return which rows of a period have a label that is known before another one."""
        return np.asarray(self.due[period] <= before)

    def rows(self, period: int, before: int) -> Samples:
        """Return these rows."""
        known = self.is_known(period, before)
        return self.periods[period] if known.all() else self.periods[period][np.flatnonzero(known)]

    def training(self, periods: Iterable[int], before: int) -> Training:
        """Return the training on what is known of these periods; equal rows give equal trainings."""
        used = tuple(j for j in periods if self.is_known(j, before).any())
        latest = max((int(self.due[j][self.is_known(j, before)].max()) for j in used), default=before)
        return Training(used, latest)

    def count(self, training: Training) -> int:
        """Return the number of rows of a training."""
        return sum(int(self.is_known(j, training.before).sum()) for j in training.periods)

    def window(self, width: int, before: int) -> Training:
        """Return the training on the latest known periods, and on what is known of newer ones."""
        return self.training(range(max(0, self.newest(before) - width + 1), before), before)


def arrive_late(periods: tuple[Samples, ...], delay: int) -> Arrivals:
    """Return labels that arrive a number of periods late."""
    return Arrivals(periods, tuple(np.full(len(rows), k + 1 + delay) for k, rows in enumerate(periods)))


def arrive_when_known(periods: tuple[Samples, ...], starts: Sequence[object] | np.ndarray) -> Arrivals:
    """Return labels that arrive at the times in `known`; `starts` are the first times of the periods.

    >>> def period(k):
    ...     return Samples(np.zeros(2), np.zeros(2), time=np.array([k, k + 0.5]), known=np.array([k + 1.2, np.nan]))
    >>> [due.tolist() for due in arrive_when_known((period(0), period(1)), np.array([0.0, 1.0])).due]  # 3: never
    [[2, 3], [3, 3]]
    """
    end, never = np.asarray(periods[-1].time)[-1], len(periods) + 1
    due = []
    for k, rows in enumerate(periods):
        known = np.asarray(rows.known)
        first = np.maximum(np.searchsorted(np.asarray(starts), known, side="right"), k + 1)
        due.append(np.where(known <= end, first, never))  # a missing time is never reached
    return Arrivals(periods, tuple(due))
