"""The audited table, cut into periods, with the model and the limits on the number of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from driftline.auditing.arrivals import Arrivals, arrive_late, arrive_when_known
from driftline.auditing.copies import copy_keys
from driftline.auditing.frame import Frame
from driftline.errors import UserError
from driftline.models.sklearn_models import SklearnModel
from driftline.models.tabular import row_index_model
from driftline.seeds import Seed
from driftline.streams.timeline import period_labels, periods
from driftline.tasks import Classification
from driftline.types import Answers, Network, Samples

MIN_PERIODS, MAX_PERIODS = 4, 40  # "auto" takes a calendar cut with this many periods
WANTED_PERIODS = 12  # fewer periods allow too few permutations to tell order from chance
MIN_ROWS = 10  # of a period, on average
MIN_RARE = 20  # rows of the rarer of two classes in a period, on average
ROW_PERIODS = 20  # periods with equal numbers of rows, where no calendar cut is suitable
CALENDAR = ("day", "week", "month", "quarter", "year", "decade")
UNITS = {"day": "days", "week": "weeks", "month": "months", "quarter": "quarters", "year": "years", "decade": "decades"}


@dataclass(frozen=True)
class Limits:
    """Maximum numbers of rows. Rows are left out at random with a fixed seed, and the report says how many."""

    rows: int = 5_000
    """Rows of a period that are predicted and trained on."""
    training_rows: int = 20_000
    """Rows of one training."""
    probe_rows: int = 2_000
    """Rows of a period on which models of other periods are evaluated; and training rows of each of these models."""


@dataclass(frozen=True, eq=False)
class AuditTable:
    """A table cut into periods, and the model to audit."""

    frame: Frame
    period: str
    names: tuple[str, ...]
    periods: tuple[Samples, ...]
    """The rows of each period in order of time."""
    model: Network
    delay: int
    """Number of periods by which labels are late, unless the frame says when each became known."""
    seed: Seed
    """The names of its children are part of the random stream; never rename them."""
    limits: Limits
    rows_before_limits: tuple[int, ...]
    """Rows of each period in the table."""
    skipped: tuple[str, ...]
    """Periods that are left out because they have too few rows."""
    tied_boundaries: int
    """Boundaries between periods that fall among rows of the same time."""
    deployed: int
    """The number of periods whose rows train the first model."""

    def new_model(self) -> SklearnModel:
        """Return an untrained model."""
        frame, seed = self.frame, self.seed.child("init")
        return row_index_model(
            frame.inputs, self.model, frame.task, frame.labels, seed, raw_features=frame.raw_features
        )

    def fit(self, rows: Samples) -> SklearnModel:
        """Return a model trained on these rows."""
        model = self.new_model()
        model.fit(rows.x, self.frame.task.targets(rows.y))
        return model

    def answer(self, model: SklearnModel, rows: Samples) -> Answers:
        """Return the answers of a model, with probabilities for classes."""
        return self.frame.task.decode(model.predict(rows.x))

    @cached_property
    def has_probabilities(self) -> bool:
        """Whether the model or the log gives class probabilities."""
        if self.is_log:
            return self.frame.logged_probabilities is not None
        return self.is_classification and hasattr(self.new_model().template.model, "predict_proba")

    @property
    def model_name(self) -> str:
        return self.model if isinstance(self.model, str) else getattr(self.model, "__name__", type(self.model).__name__)

    @property
    def is_log(self) -> bool:
        """Whether logged predictions are audited instead of a model."""
        return self.frame.logged_predictions is not None

    @property
    def is_classification(self) -> bool:
        return isinstance(self.frame.task, Classification)

    @cached_property
    def arrivals(self) -> Arrivals:
        """When labels arrive."""
        if self.frame.samples.known is None:
            return arrive_late(self.periods, self.delay)
        return arrive_when_known(self.periods, self.starts)

    @cached_property
    def copy_keys(self) -> np.ndarray | None:
        """A key by the number of each row that copies of a row share; None if there are no copies."""
        keys = copy_keys(self.frame)
        if keys is None:
            return None
        by_number = np.zeros(int(self.frame.samples.id.max()) + 1, keys.dtype)
        by_number[self.frame.samples.id] = keys
        return by_number

    @cached_property
    def first_replayed(self) -> int:
        """The first period that the first model predicts: the one after its labels are known."""
        return max(self.arrivals.known_from[: self.deployed])

    @cached_property
    def unit(self) -> str:
        """The unit of a number of periods: the calendar's, or just periods if some of the calendar's are missing."""
        return "periods" if self._has_gaps else UNITS.get(self.period, "periods")

    @cached_property
    def starts(self) -> np.ndarray:
        """The first time of each period."""
        return np.array([np.asarray(rows.time)[0] for rows in self.periods])

    @cached_property
    def _has_gaps(self) -> bool:
        """Whether periods of the calendar are missing in between."""
        steps = np.diff(self.starts)
        return self.period in UNITS and bool((steps > 1.7 * np.median(steps)).any())

    @cached_property
    def length(self) -> str:
        """The length of a period in words; empty if its name says it."""
        if self._has_gaps:
            return f"a period is a {self.period}; some are missing"
        if self.period in UNITS:
            return ""
        median = np.median(np.diff(self.starts))
        if self.starts.dtype.kind == "M":
            return f"a period is about {float(median / np.timedelta64(1, 'D')):.3g} days"
        return f"a period is about {float(median):.3g} of the time column's units"


def prepare(
    frame: Frame, model: Network, period: str, delay: int, seed: int, limits: Limits, deployed: int | None = None
) -> AuditTable:
    """Cut a table into periods and apply the limits; raise UserError if it cannot be audited."""
    samples, root = frame.samples, Seed(seed)
    assert samples.time is not None
    if samples.time[0] == samples.time[-1]:
        raise UserError(f"every row has the same time, {samples.time[0]}: an audit compares rows of different times")
    period = choose_period(samples.time, _rare_share(frame)) if period == "auto" else period
    cut = periods(samples, period, holdout=0.5, seed=root.child("split"))
    rows = [_in_order(cut.all_samples(k)) for k in range(len(cut))]
    deployed = default_deployed(len(rows)) if deployed is None else deployed
    if deployed < 1:
        raise UserError(
            f"the deployed model needs at least one training period; the first one begins at {samples.time[0]}"
        )
    _check_number(period, len(rows), deployed, delay)
    used = tuple(draw(part, limits.rows, root.child("rows", n)) for n, part in zip(cut.names, rows, strict=True))
    sizes = tuple(map(len, rows))
    skipped = tuple(cut.skipped)
    tied = sum(bool(np.asarray(a.time).max() == np.asarray(b.time).min()) for a, b in pairwise(rows))
    table = AuditTable(frame, period, cut.names, used, model, delay, root, limits, sizes, skipped, tied, deployed)
    if table.first_replayed > len(rows) - 1 and not table.is_log:
        raise UserError(
            f"half of the labels of the first {deployed} periods become known only in or after the last period, so "
            "no policy can be replayed: choose a finer period or fewer periods for the deployed model"
        )
    return table


def _check_number(period: str, count: int, deployed: int, delay: int) -> None:
    needed = max(3, deployed + 1) + delay
    if count < needed:
        late = f" with labels {delay} periods late" if delay else ""
        raise UserError(
            f"period '{period}' cuts the table into {count} periods, and an audit{late} needs at least {needed}: "
            "choose a finer period"
        )


def default_deployed(count: int) -> int:
    """Return the number of periods whose rows train the first model: 3 of 9 or more, 2 of 5 or more, else 1."""
    return 3 if count >= 9 else 2 if count >= 5 else 1


def periods_until(starts: np.ndarray, until: str) -> int:
    """Return the number of periods that begin up to a date."""
    try:
        end = np.datetime64(until) if starts.dtype.kind == "M" else float(until)
    except ValueError:
        raise UserError(f"--train-until '{until}' is not a value of the time column, such as {starts[0]}") from None
    return int((starts <= end).sum())


def _in_order(samples: Samples) -> Samples:
    return samples[np.lexsort((samples.id, np.asarray(samples.time)))]


def _rare_share(frame: Frame) -> float:
    """Return the share of the rarer of two classes; 1 for any other target."""
    if not isinstance(frame.task, Classification) or len(frame.task.classes) != 2:
        return 1.0
    return float(np.bincount(frame.samples.y, minlength=2).min() / len(frame.samples))


def choose_period(time: np.ndarray, rare_share: float = 1.0) -> str:
    """Return the finest cut by time value or calendar into 12 to 40 periods, else into 4 or more, else equal ones.

    Periods have 10 rows or more on average, and 20 of the rarer of two classes.

    >>> choose_period(np.repeat([2015, 2016, 2017, 2018], 10)), choose_period(np.arange(1000))
    ('each', '50 rows')
    """
    cuts = ("each", *(CALENDAR if time.dtype.kind == "M" else ()))
    return choose_cut(np.unique(time), len(time), cuts, rare_share)


def choose_cut(distinct: np.ndarray, rows: int, cuts: Sequence[str], rare_share: float = 1.0) -> str:
    """Return the best of these cuts for a number of rows with these distinct times, else equal numbers of rows."""
    for_rare = round(MIN_RARE / max(rare_share, 1e-9)) if rare_share < 1 else 0
    least = max(MIN_ROWS, min(rows // MIN_PERIODS, for_rare))
    possible = []
    for cut in cuts:
        if cut == "each" and len(distinct) > MAX_PERIODS:
            continue
        count = len(np.unique(period_labels(distinct, cut)))
        if MIN_PERIODS <= count <= MAX_PERIODS and rows >= least * count:
            possible.append((count < WANTED_PERIODS, cut))
    if possible:
        return min(possible, key=lambda option: option[0])[1]
    return f"{max(least, -(-rows // ROW_PERIODS))} rows"


def draw(samples: Samples, limit: int, seed: Seed) -> Samples:
    """Return the samples, or a uniform draw of `limit` of them in their order."""
    if len(samples) <= limit:
        return samples
    return samples[np.sort(seed.numpy().choice(len(samples), limit, replace=False))]
