"""A time column cut into periods: years, months, a number of rows, or its own values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import pandas as pd

from driftline.errors import UserError
from driftline.seeds import Seed
from driftline.types import Probe, Samples, Step

CALENDAR = {"year": "Y", "quarter": "Q", "month": "M", "week": "W", "day": "D"}
T = TypeVar("T")
AUTO_MAX_PERIODS = 100  # "auto" takes the finest cut with at most this many periods


@dataclass(frozen=True, eq=False)
class Periods:
    """A stream of one step per period, each with a held-out part that is never shown to a learner."""

    names: tuple[str, ...]
    revealed: tuple[Samples, ...]
    held_out: tuple[Samples, ...]
    skipped: dict[str, int]
    later: tuple[Samples, ...] | None = None
    """The samples of each period that earlier models are tested on; None: all of it."""

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, index: int) -> Step:
        index = range(len(self))[index]
        return Step(index, self.names[index], self.revealed[index])

    def all_samples(self, index: int) -> Samples:
        """Return all samples of a period, for models that were not trained on any of them."""
        if self.later is not None:
            return self.later[index]
        return Samples.concat([self.revealed[index], self.held_out[index]])

    def first(self, count: int) -> Periods:
        """Return the first periods as a stream of their own."""
        return self._select(range(count))

    def shuffled(self, seed: Seed) -> Periods:
        """Return the periods in a random order: what horizons are where time has no direction."""
        return self._select(seed.numpy().permutation(len(self)).tolist())

    def _select(self, order: Sequence[int]) -> Periods:
        def select(parts: tuple[T, ...]) -> tuple[T, ...]:
            return tuple(parts[k] for k in order)

        return replace(
            self,
            names=select(self.names),
            revealed=select(self.revealed),
            held_out=select(self.held_out),
            later=None if self.later is None else select(self.later),
        )


@dataclass(frozen=True)
class PeriodRange:
    """The periods from `first` up to `end`; those before have trained the starting model."""

    timeline: Periods
    first: int
    end: int

    def __len__(self) -> int:
        return self.end - self.first

    def __getitem__(self, index: int) -> Step:
        position = range(self.first, self.end)[index]
        return replace(self.timeline[position], index=position - self.first)


@dataclass(frozen=True)
class LaterPeriodProbes:
    """Probes after period t: its held-out part, then every sample of each later period, `horizon` of them or all."""

    timeline: Periods
    first: int = 0
    horizon: int | None = None
    skip: int = 0
    """Number of first steps after which nothing is tested."""

    def due(self, step: Step | None) -> Iterable[Probe]:
        if step is None or step.index < self.skip:
            return
        t = self.first + step.index
        yield Probe(self.timeline.names[t], self.timeline.held_out[t])
        last = len(self.timeline) if self.horizon is None else min(len(self.timeline), t + 1 + self.horizon)
        for tau in range(t + 1, last):
            yield Probe(self.timeline.names[tau], self.timeline.all_samples(tau))


def periods(
    samples: Samples,
    period: str = "auto",
    *,
    holdout: float | np.ndarray = 0.1,
    min_samples: int = 10,
    seed: Seed = Seed(0),
) -> Periods:
    """Cut samples into periods and hold out a part of each: a share, or the samples that a mask marks.

    `period`: each (every distinct time), decade, year, quarter, month, week, day, "500 rows", or auto (the finest
    of these with at most 100 periods). A period with fewer than `min_samples` samples is left out and named.
    So is one that a mask leaves no sample to reveal or none to hold out. For a share, a seeded permutation of each
    period selects floor((1 - holdout) n) samples to reveal; the rest is held out.
    """
    if samples.time is None:
        raise UserError("these data have no time column, and periods are cut along time")
    time = np.asarray(samples.time)
    if np.any(time[1:] < time[:-1]):
        order = np.argsort(time, kind="stable")
        samples, time = samples[order], time[order]
        holdout = holdout[order] if isinstance(holdout, np.ndarray) else holdout
    labels = period_labels(time, period)
    names, start, counts = np.unique(labels, return_index=True, return_counts=True)
    order = np.argsort(start, kind="stable")
    shown, held_out, kept, left_out = [], [], [], {}
    rows_by_label = np.split(np.argsort(labels, kind="stable"), np.cumsum(counts)[:-1])
    for k in order:
        name, rows = str(names[k]), np.sort(rows_by_label[k])
        inside, outside = _split(rows, holdout, seed.child("holdout", name))
        if len(rows) < max(min_samples, 2) or not len(inside) or not len(outside):
            left_out[name] = len(rows)
            continue
        shown.append(samples[inside])
        held_out.append(samples[outside])
        kept.append(name)
    if len(kept) < 2:
        raise _too_few(len(kept), time, period, min_samples)
    return Periods(tuple(kept), tuple(shown), tuple(held_out), left_out)


def _split(rows: np.ndarray, holdout: float | np.ndarray, seed: Seed) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of a period to reveal, and those to hold out."""
    if isinstance(holdout, np.ndarray):
        return rows[~holdout[rows]], rows[holdout[rows]]
    mixed = rows[seed.numpy().permutation(len(rows))]
    cut = min(max(int((1 - holdout) * len(rows) + 1e-9), 1), len(rows) - 1)
    return np.sort(mixed[:cut]), np.sort(mixed[cut:])


def _too_few(n: int, time: np.ndarray, period: str, min_samples: int) -> UserError:
    """Return the error for times that give fewer than two periods."""
    if len(np.unique(time)) == 1:
        return UserError(
            f"all {len(time)} samples have the time {time[0]}: give each its own, such as driftline.Samples(x=x, "
            f"y=y, time=time) in Python, or cut by rows, such as timeline.period='{max(len(time) // 10, 1)} rows'"
        )
    return UserError(
        f"cutting {len(time)} samples by period '{period}' leaves {n} period(s) of at least "
        f"{min_samples} samples, and change over time needs two. Choose a period that suits the data"
    )


def period_labels(time: np.ndarray, period: str) -> np.ndarray:
    """Return the name of each sample's period. Times must be in order.

    >>> period_labels(np.array([1931, 1938, 1940]), "decade").tolist()
    ['1930s', '1930s', '1940s']
    >>> period_labels(np.array(["2024-02-01", "2024-05-09"], dtype="datetime64[D]"), "quarter").tolist()
    ['2024-Q1', '2024-Q2']
    """
    if period == "auto":
        period = _auto_period(time)
    if match := re.fullmatch(r"(\d+) ?rows", period):
        size = int(match[1])
        if not size:
            raise UserError("a period of 0 rows is empty: give 1 row or more, such as '500 rows'")
        return np.array([f"rows {1 + k * size}-{(k + 1) * size}" for k in np.arange(len(time)) // size])
    if period == "each":
        return np.datetime_as_string(time) if time.dtype.kind == "M" else time.astype(str)
    if time.dtype.kind == "M":
        return _calendar(time, period)
    if period in ("year", "decade") and np.array_equal(time, np.floor(time)):
        years = time.astype(int)
        return np.array([f"{y}s" for y in years // 10 * 10]) if period == "decade" else years.astype(str)
    known = "each, '<N> rows' or auto, and year or decade for whole numbers"
    raise UserError(f"period '{period}' cannot cut a time column of numbers: use {known}")


def _calendar(time: np.ndarray, period: str) -> np.ndarray:
    if period == "decade":
        years = time.astype("datetime64[Y]").astype(int) + 1970
        return np.array([f"{y}s" for y in years // 10 * 10])
    if period not in CALENDAR:
        raise UserError(f"no period '{period}': use each, decade, {', '.join(CALENDAR)}, '<N> rows' or auto")
    cut = pd.PeriodIndex(pd.DatetimeIndex(time), freq=CALENDAR[period])
    if period == "quarter":
        return cut.strftime("%Y-Q%q").to_numpy(str)
    return (cut.start_time.strftime("%Y-%m-%d") if period == "week" else cut.astype(str)).to_numpy(str)


def _auto_period(time: np.ndarray) -> str:
    if len(np.unique(time)) <= AUTO_MAX_PERIODS:
        return "each"
    cuts = ["day", "week", "month", "quarter", "year", "decade"] if time.dtype.kind == "M" else []
    for cut in cuts:
        if len(np.unique(_calendar(time, cut))) <= AUTO_MAX_PERIODS:
            return cut
    return f"{-(-len(time) // 20)} rows"
