"""What an audit is about: the table cut into periods, the model, and the limits that keep it quick."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from driftline.data.frame import Frame
from driftline.errors import UserError
from driftline.models.estimator import Estimator
from driftline.models.tabular import on_rows
from driftline.seeds import Seed
from driftline.streams.periods import Periods, period_labels, periods
from driftline.tasks import Classification
from driftline.types import Samples, Step

SMALLEST = 10  # rows in a period, on average
FEWEST, MOST = 4, 36  # "auto" takes the finest calendar cut with so many periods
BLOCKS = 20  # or else so many periods with the same number of rows
HOLDOUT = 0.2
INNER = 10  # so many different times inside a period on average make an order that held-out rows must respect
WORDS = {"day": "days", "week": "weeks", "month": "months", "quarter": "quarters", "year": "years", "decade": "decades"}


@dataclass(frozen=True)
class Limits:
    """How much is looked at; what is left out is left out at random, with a fixed seed, and said."""

    rows: int = 10_000
    """Rows of a period that are answered and trained on."""
    trained: int = 50_000
    """Rows of one training."""
    examined: int = 2_000
    """Rows of a period that each earlier model is examined on, and that distances are computed from."""


@dataclass(frozen=True, eq=False)
class Setting:
    """A table with roles, in periods."""

    frame: Frame
    period: str
    cut: Periods
    model: Any
    delay: int
    seed: Seed
    limits: Limits
    whole: tuple[int, ...]
    """How many rows each period has in the table."""
    ordered: bool = False
    """Whether the held-out rows are the last of their period, because time goes on inside it."""
    tied: int = 0
    """How many cuts between periods fall among rows of one and the same time."""

    def new_model(self) -> Estimator:
        """The model as if it had never been trained."""
        frame, seed = self.frame, self.seed.child("init")
        return on_rows(frame.inputs, self.model, frame.task, frame.labels, seed, as_given=frame.as_given)

    @property
    def names(self) -> tuple[str, ...]:
        return self.cut.names

    @property
    def first(self) -> int:
        """The first period in which a model is in use: the one after the first labels have come."""
        return 1 + self.delay

    @property
    def classifies(self) -> bool:
        return isinstance(self.frame.task, Classification)

    @cached_property
    def stream(self) -> Stream:
        return Stream(self.cut)

    @cached_property
    def unit(self) -> str:
        """What a number of periods is counted in; just periods if some of the calendar's are missing."""
        return "periods" if self._gaps else WORDS.get(self.period, "periods")

    @cached_property
    def _begun(self) -> np.ndarray:
        starts = [self.stream[k].samples.time for k in range(len(self.cut))]
        return np.array([time.min() for time in starts if time is not None])

    @cached_property
    def _gaps(self) -> bool:
        """Whether periods that follow each other here lie further apart in time."""
        steps = np.diff(self._begun)
        return self.period in WORDS and bool((steps > 1.7 * np.median(steps)).any())

    @cached_property
    def length(self) -> str:
        """How long a period is, in the table's own time; empty if its name says so."""
        if self._gaps:
            return f"a period is a {self.period}; some are missing"
        if self.period in WORDS:
            return ""
        begun = self._begun
        usual = np.median(np.diff(begun))
        if begun.dtype.kind == "M":
            return f"a period is about {float(usual / np.timedelta64(1, 'D')):.3g} days"
        return f"a period is about {float(usual):.3g} of the time column's units"


@dataclass(frozen=True)
class Stream:
    """Every period with all of its rows in the order of time."""

    cut: Periods

    def __len__(self) -> int:
        return len(self.cut)

    def __getitem__(self, index: int) -> Step:
        index = range(len(self))[index]
        both = self.cut.everything(index)
        assert both.time is not None
        return Step(index, self.cut.names[index], both[np.lexsort((both.id, both.time))])


def setting(frame: Frame, model: Any, period: str, delay: int, seed: int, limits: Limits, holdout: float) -> Setting:
    """Cut a table into periods, thin those that are too long, and refuse what cannot be audited."""
    samples, root = frame.samples, Seed(seed)
    assert samples.time is not None
    if samples.time[0] == samples.time[-1]:
        raise UserError(f"every row has the same time, {samples.time[0]}, and without a course of time nothing can age")
    period = choose_period(samples.time) if period == "auto" else period
    cut = periods(samples, period, holdout=holdout, seed=root.child("split"))
    if len(cut) < 3 + delay:
        raise UserError(
            f"period '{period}' cuts the table into {len(cut)} periods, and an audit"
            f"{f' with labels {delay} periods late' if delay else ''} needs at least {3 + delay}: choose a finer period"
        )
    times = [np.unique(part.time) for part in cut.shown if part.time is not None]
    ordered = bool(np.mean([len(distinct) for distinct in times]) >= INNER)
    cut = last_aside(cut) if ordered else cut
    sizes = tuple(len(a) + len(b) for a, b in zip(cut.shown, cut.held_out, strict=True))
    tied = cuts_among_equals(cut)
    cut = thinned(cut, limits.rows, holdout, root)
    return Setting(frame, period, cut, model, delay, root, limits, sizes, ordered, tied)


def cuts_among_equals(cut: Periods) -> int:
    """How many periods begin with the very time at which the one before ended."""
    times = [np.asarray(cut.everything(k).time) for k in range(len(cut))]
    return sum(bool(before.max() == after.min()) for before, after in pairwise(times))


def last_aside(cut: Periods) -> Periods:
    """The same periods with as many rows held out, but the last ones.

    Neighbours in time are often alike, and a model that was trained on the neighbours of its test looks better than it
    is. So a period in which time goes on is cut in time as well.
    """
    stream = Stream(cut)
    whole = [stream[k].samples for k in range(len(cut))]
    return replace(
        cut,
        shown=tuple(rows[slice(len(part))] for rows, part in zip(whole, cut.shown, strict=True)),
        held_out=tuple(rows[slice(len(part), None)] for rows, part in zip(whole, cut.shown, strict=True)),
    )


def choose_period(time: np.ndarray) -> str:
    """The finest cut by the calendar, or by the values of the time column, into 4 to 36 periods; else equal blocks.

    These are 20, or fewer: periods have 10 rows or more on average.

    >>> choose_period(np.repeat([2015, 2016, 2017, 2018], 10)), choose_period(np.arange(1000))
    ('each', '50 rows')
    """
    cuts = ["each", *(["day", "week", "month", "quarter", "year", "decade"] if time.dtype.kind == "M" else [])]
    distinct = np.unique(time)
    for cut in cuts:
        if cut == "each" and len(distinct) > MOST:
            continue
        count = len(np.unique(period_labels(distinct, cut)))
        if FEWEST <= count <= MOST and len(time) >= SMALLEST * count:
            return cut
    return f"{max(SMALLEST, -(-len(time) // BLOCKS))} rows"


def thinned(cut: Periods, most: int, holdout: float, seed: Seed) -> Periods:
    """At most so many rows per period, drawn at random from the shown and from the held-out ones."""
    held = max(1, int(most * holdout))
    return replace(
        cut,
        shown=tuple(draw(s, most - held, seed.child("rows", n)) for n, s in zip(cut.names, cut.shown, strict=True)),
        held_out=tuple(
            draw(s, held, seed.child("rows", "held-out", n)) for n, s in zip(cut.names, cut.held_out, strict=True)
        ),
    )


def draw(samples: Samples, most: int, seed: Seed) -> Samples:
    """The samples, or a uniform draw of `most` of them in their order."""
    if len(samples) <= most:
        return samples
    return samples[np.sort(seed.numpy().choice(len(samples), most, replace=False))]
