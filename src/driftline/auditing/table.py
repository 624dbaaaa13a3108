"""The audited table, cut into periods, with the model and the limits on the number of rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from driftline.auditing.frame import Frame
from driftline.errors import UserError
from driftline.models.sklearn_models import SklearnModel
from driftline.models.tabular import row_index_model
from driftline.reveal import delivery_steps, known_by
from driftline.seeds import Seed
from driftline.streams.timeline import Periods, period_labels, periods
from driftline.tasks import Classification
from driftline.types import Network, Samples, Step

MIN_PERIODS, MAX_PERIODS = 4, 36  # "auto" takes the finest calendar cut with this many periods
MIN_ROWS = 10  # of a period, on average
ROW_PERIODS = 20  # periods with equal numbers of rows, where no calendar cut is suitable
HOLDOUT = 0.2
MIN_TIMES = 10  # with this many distinct times per period on average, the last rows are held out
UNITS = {"day": "days", "week": "weeks", "month": "months", "quarter": "quarters", "year": "years", "decade": "decades"}


@dataclass(frozen=True)
class Limits:
    """Maximum numbers of rows. Rows are left out at random with a fixed seed, and the report says how many."""

    rows: int = 10_000
    """Rows of a period that are predicted and trained on."""
    training_rows: int = 50_000
    """Rows of one training."""
    probe_rows: int = 2_000
    """Rows of a period that each earlier model is evaluated on, and that distances are computed from."""

    def __post_init__(self) -> None:
        if self.rows < 2 or self.training_rows < 1 or self.probe_rows < 1:
            raise UserError("limits: rows must be 2 or greater, training_rows and probe_rows 1 or greater")


@dataclass(frozen=True, eq=False)
class AuditTable:
    """A table cut into periods, and the model to audit."""

    frame: Frame
    period: str
    periods: Periods
    model: Network
    delay: int
    seed: Seed
    """The names of its children are part of the random stream; never rename them."""
    limits: Limits
    rows_before_limits: tuple[int, ...]
    """Rows of each period in the table."""
    ordered_holdout: bool
    """Whether the held-out rows are the last ones of each period, and not a random draw."""
    tied_boundaries: int
    """Boundaries between periods that fall among rows of the same time."""

    def new_model(self) -> SklearnModel:
        """Return an untrained model."""
        frame, seed = self.frame, self.seed.child("init")
        return row_index_model(
            frame.inputs, self.model, frame.task, frame.labels, seed, raw_features=frame.raw_features
        )

    @property
    def model_name(self) -> str:
        return self.model if isinstance(self.model, str) else getattr(self.model, "__name__", type(self.model).__name__)

    @property
    def is_log(self) -> bool:
        """Whether logged predictions are audited instead of a model."""
        return self.frame.logged_predictions is not None

    @property
    def names(self) -> tuple[str, ...]:
        return self.periods.names

    @property
    def first_deployed(self) -> int:
        """The first period with a deployed model: the one after the first labels are revealed."""
        return 1 + self.deliveries[0]

    @cached_property
    def deliveries(self) -> list[int]:
        """The periods at whose end labels are revealed."""
        return delivery_steps(self.stream, self.delay)

    def labels_before(self, index: int) -> list[np.ndarray]:
        """Return the labels by period that are revealed before a period; of the first period if there are none."""
        if self.frame.samples.known is None or index < self.first_deployed:
            return [self.rows(k).y for k in range(max(1, index - self.delay))]
        now = np.max(np.asarray(self.rows(index - 1).time))
        return [part.y[known_by(part, now)] for part in map(self.rows, range(index))]

    @property
    def is_classification(self) -> bool:
        return isinstance(self.frame.task, Classification)

    @cached_property
    def stream(self) -> PeriodStream:
        return PeriodStream(self.periods)

    def rows(self, index: int) -> Samples:
        """Return all rows of a period in order of time."""
        return self.stream[index].samples

    @cached_property
    def unit(self) -> str:
        """The unit of a number of periods: the calendar's, or just periods if some of the calendar's are missing."""
        return "periods" if self._has_gaps else UNITS.get(self.period, "periods")

    @cached_property
    def _starts(self) -> np.ndarray:
        times = [self.rows(k).time for k in range(len(self.periods))]
        return np.array([time.min() for time in times if time is not None])

    @cached_property
    def _has_gaps(self) -> bool:
        """Whether periods of the calendar are missing in between."""
        steps = np.diff(self._starts)
        return self.period in UNITS and bool((steps > 1.7 * np.median(steps)).any())

    @cached_property
    def length(self) -> str:
        """The length of a period in words; empty if its name says it."""
        if self._has_gaps:
            return f"a period is a {self.period}; some are missing"
        if self.period in UNITS:
            return ""
        median = np.median(np.diff(self._starts))
        if self._starts.dtype.kind == "M":
            return f"a period is about {float(median / np.timedelta64(1, 'D')):.3g} days"
        return f"a period is about {float(median):.3g} of the time column's units"


@dataclass(frozen=True)
class PeriodStream:
    """Every period with all of its rows in order of time."""

    periods: Periods

    def __len__(self) -> int:
        return len(self.periods)

    def __getitem__(self, index: int) -> Step:
        index = range(len(self))[index]
        samples = self.periods.all_samples(index)
        assert samples.time is not None
        return Step(index, self.periods.names[index], samples[np.lexsort((samples.id, samples.time))])


def prepare(
    frame: Frame, model: Network, period: str, delay: int, seed: int, limits: Limits, holdout: float
) -> AuditTable:
    """Cut a table into periods and apply the limits; raise UserError if it cannot be audited."""
    samples, root = frame.samples, Seed(seed)
    assert samples.time is not None
    if samples.time[0] == samples.time[-1]:
        raise UserError(f"every row has the same time, {samples.time[0]}: an audit compares rows of different times")
    period = choose_period(samples.time) if period == "auto" else period
    cut = periods(samples, period, holdout=holdout, seed=root.child("split"))
    if samples.known is not None:
        _check_label_times(PeriodStream(cut))
    if len(cut) < 3 + delay:
        late = f" with labels {delay} periods late" if delay else ""
        raise UserError(
            f"period '{period}' cuts the table into {len(cut)} periods, and an audit{late} needs at least {3 + delay}: "
            "choose a finer period"
        )
    times = [np.unique(part.time) for part in cut.revealed if part.time is not None]
    ordered = bool(np.mean([len(distinct) for distinct in times]) >= MIN_TIMES)
    cut = hold_out_last_rows(cut) if ordered else cut
    sizes = tuple(len(a) + len(b) for a, b in zip(cut.revealed, cut.held_out, strict=True))
    tied = count_tied_boundaries(cut)
    cut = subsample(cut, limits.rows, holdout, root)
    return AuditTable(frame, period, cut, model, delay, root, limits, sizes, ordered, tied)


def _check_label_times(stream: PeriodStream) -> None:
    """Refuse labels that come too late to deploy a model in two periods."""
    steps = delivery_steps(stream)
    if not steps or steps[0] > len(stream) - 3:
        when = f"the first labels are known in period {steps[0] + 1}" if steps else "no label is known"
        raise UserError(
            f"{when} of {len(stream)}, and an audit needs two periods after: choose a finer period, or correct the "
            "label times"
        )


def count_tied_boundaries(cut: Periods) -> int:
    """Return the number of periods whose first time is the last time of the period before."""
    times = [np.asarray(cut.all_samples(k).time) for k in range(len(cut))]
    return sum(bool(before.max() == after.min()) for before, after in pairwise(times))


def hold_out_last_rows(cut: Periods) -> Periods:
    """Return the same periods with as many rows held out, but the last ones of each.

    Rows close in time are often alike, so a model trained on the neighbors of its test rows would look too good.
    """
    stream = PeriodStream(cut)
    rows = [stream[k].samples for k in range(len(cut))]
    return replace(
        cut,
        revealed=tuple(part[slice(len(revealed))] for part, revealed in zip(rows, cut.revealed, strict=True)),
        held_out=tuple(part[slice(len(revealed), None)] for part, revealed in zip(rows, cut.revealed, strict=True)),
    )


def choose_period(time: np.ndarray) -> str:
    """Return the finest cut by time value or calendar into 4 to 36 periods, else a cut into up to 20 equal ones.

    Periods have 10 rows or more on average.

    >>> choose_period(np.repeat([2015, 2016, 2017, 2018], 10)), choose_period(np.arange(1000))
    ('each', '50 rows')
    """
    cuts = ["each", *(["day", "week", "month", "quarter", "year", "decade"] if time.dtype.kind == "M" else [])]
    distinct = np.unique(time)
    for cut in cuts:
        if cut == "each" and len(distinct) > MAX_PERIODS:
            continue
        count = len(np.unique(period_labels(distinct, cut)))
        if MIN_PERIODS <= count <= MAX_PERIODS and len(time) >= MIN_ROWS * count:
            return cut
    return f"{max(MIN_ROWS, -(-len(time) // ROW_PERIODS))} rows"


def subsample(cut: Periods, limit: int, holdout: float, seed: Seed) -> Periods:
    """Return periods with at most `limit` rows each, drawn at random from the shown and from the held-out rows."""
    held = max(1, int(limit * holdout))
    return replace(
        cut,
        revealed=tuple(
            draw(s, limit - held, seed.child("rows", n)) for n, s in zip(cut.names, cut.revealed, strict=True)
        ),
        held_out=tuple(
            draw(s, held, seed.child("rows", "held-out", n)) for n, s in zip(cut.names, cut.held_out, strict=True)
        ),
    )


def draw(samples: Samples, limit: int, seed: Seed) -> Samples:
    """Return the samples, or a uniform draw of `limit` of them in their order."""
    if len(samples) <= limit:
        return samples
    return samples[np.sort(seed.numpy().choice(len(samples), limit, replace=False))]
