"""What an audit says about aging and change. A sentence is written only if its test has passed."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from driftline.auditing.change_date import ChangeDate
from driftline.auditing.estimate import Estimate
from driftline.auditing.metric import Metric
from driftline.auditing.shape import Shape
from driftline.auditing.sizes import Sizes
from driftline.auditing.verdict import LEVEL, MIN_PERIODS, Verdict

FEW_PERIODS = 12


RELATION_Z = 3.0  # z of the period's help above which the relation changed


@dataclass(frozen=True)
class Aging:
    """Verdict and sizes of the deciding metric, with the names that sentences use."""

    verdict: Verdict
    sizes: Sizes
    periods: tuple[str, ...]
    """Periods of the matrix."""
    pieces: int
    """Number of them in a period of the page."""
    unit: str
    """Unit of a period of the page."""
    training_rows: int
    cause_z: float | None
    """How much the period helps to predict at equal inputs; None if models did not age."""
    loss_since: tuple[Estimate, ...]
    """By cut, what models of before lose after it."""
    loss_per_period: Estimate
    base_rates: tuple[float, float] | None = None
    """Fitted share of the class that moved most, at the begin and the end."""
    base_rate_class: str | None = None
    has_probabilities: bool = True

    is_number: bool = False
    slope: Estimate | None = None
    """Slope of the deployed model's logits in the last period in which its probabilities are off."""

    @property
    def metric(self) -> Metric:
        return self.sizes.metric

    @property
    def only_inputs_changed(self) -> bool:
        """Whether models age because inputs are new to them, with no change of the relation at equal inputs."""
        return self.cause_z is not None and self.cause_z <= RELATION_Z

    def age(self, periods: float) -> str:
        """Return a number of matrix periods in the page's unit."""
        value = periods / self.pieces
        return f"{value:.3g} {self.unit.removesuffix('s') if value == 1 else self.unit}"


def interval(metric: Metric, estimate: Estimate) -> str:
    """Return the 95 % interval in brackets."""
    if not math.isfinite(estimate.low):
        return "[–]"
    scale, form = (100, "z.1f") if metric.unit == "share" else (1, "z.3g")
    return f"[{scale * estimate.low:{form}}, {scale * estimate.high:{form}}]"


def amount(metric: Metric, estimate: Estimate, sign: bool = False) -> str:
    """Return a difference with its interval."""
    return f"{metric.difference(estimate.value, sign)} {interval(metric, estimate)}"


def behind_text(metric: Metric, staleness: Estimate) -> str:
    """Return how far an old model is behind a new one, or ahead."""
    if staleness.value >= 0:
        return f"{amount(metric, staleness)} behind a new one"
    return f"{amount(metric, Estimate(-staleness.value, -staleness.high, -staleness.low))} ahead of a new one"


def p_value(p: float) -> str:
    """Return a p-value in words.

    >>> p_value(0.0005), p_value(0.412)
    ('p < 0.001', 'p = 0.41')
    """
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}" if p < 0.01 else f"p = {p:.2f}"


def date_text(date: ChangeDate) -> str:
    """Return a date with its interval.

    >>> day = np.datetime64
    >>> date_text(ChangeDate(day("2024-05-14"), day("2024-05-12"), day("2024-05-16")))
    '2024-05-14 (between 2024-05-12 and 2024-05-16)'
    """
    values = (date.at, date.low, date.high)
    if isinstance(date.at, np.datetime64):
        minutes = [str(value.astype("datetime64[m]")).replace("T", " ") for value in values]
        days = [text[:10] for text in minutes]
        texts = days if days[1] != days[2] else minutes
    else:
        texts = [f"{value:.10g}" for value in values]
    return texts[0] if texts[1] == texts[2] else f"{texts[0]} (between {texts[1]} and {texts[2]})"


def findings(aging: Aging) -> list[str]:
    """Return all sentences about aging, change and difficulty."""
    verdict = aging.verdict
    if not verdict.has_skill:
        return [
            "Models of one period are no better than a constant answer (the trivial baseline), so aging cannot be "
            "measured."
        ]
    if verdict.aged:
        sentences = _aged(aging)
    elif verdict.miscalibrated:
        sentences = _miscalibrated(aging)
    elif verdict.unordered:
        sentences = _unordered(aging)
    else:
        sentences = _nothing(aging)
    if not aging.has_probabilities and (verdict.aged or verdict.unordered):
        sentences.append(
            "The model gives no probabilities, so a moved base rate or more noise looks the same as a changed relation."
        )
    return [*sentences, *_difficulty(aging)]


def _aged(aging: Aging) -> list[str]:
    verdict, sizes, metric = aging.verdict, aging.sizes, aging.metric
    shape, p = verdict.shape, p_value(max(_order_p(verdict), verdict.recalibrated.difference))
    assert shape is not None
    if aging.only_inputs_changed:
        return [
            f"The model ages ({p}): older models lose {amount(metric, sizes.staleness)} because later inputs are new "
            "to them; at equal inputs no change was found. Rows that cover these inputs help, whenever they were "
            "collected."
        ]
    sentences = _changes(aging, shape, p)
    if shape.further is not None:
        sentences.append(_further(aging))
    if sizes.staleness.low <= 0:
        most = metric.difference(max(sizes.staleness.high, 0))
        sentences.append(f"It changes measurably, but costs less than {most}.")
    return sentences


def _changes(aging: Aging, shape: Shape, p: str) -> list[str]:
    """Return how the relation between inputs and target changed over time."""
    metric, dates = aging.metric, aging.verdict.dates
    if shape.kind == "abrupt":
        return [
            f"The model ages: {'on' if isinstance(date.at, np.datetime64) else 'at'} {date_text(date)} the relation "
            f"between inputs and target changed ({p}). Since then an older model loses {amount(metric, loss)}."
            for date, loss in zip(dates, aging.loss_since, strict=True)
        ]
    if shape.kind == "temporary":
        begin, end = (date_text(date) for date in dates)
        return [
            f"The relation between inputs and target changed for a time, from {begin} until {end}, and then returned "
            f"({p}). Meanwhile an older model lost {amount(metric, aging.loss_since[0])}."
        ]
    if shape.kind == "gradual":
        assert shape.start is not None
        assert shape.end is not None
        return [
            f"The model ages: the relation between inputs and target changes gradually, from "
            f"{aging.periods[shape.start]} to {aging.periods[shape.end]} ({p}). A model loses "
            f"{amount(metric, _per_unit(aging))} per {aging.unit.removesuffix('s')} of age."
        ]
    if shape.kind == "recurring":
        assert shape.cycle is not None
        return [
            f"The relation between inputs and target changes in a cycle of {aging.age(shape.cycle)} ({p}). Old models "
            "are not outdated, they are out of season: train on the same season, or give the model the season as an "
            "input."
        ]
    return [
        f"The model ages: the relation between inputs and target changes over time ({p}), but "
        f"{len(aging.periods)} periods do not show in which shape."
    ]


def _per_unit(aging: Aging) -> Estimate:
    slope, k = aging.loss_per_period, aging.pieces
    return Estimate(k * slope.value, k * slope.low, k * slope.high)


def _further(aging: Aging) -> str:
    shape = aging.verdict.shape
    assert shape is not None
    assert shape.further is not None
    what = "a further change"
    if shape.further.family == "recurring":
        what = f"a cycle of {aging.age(shape.further.kernel.cycle)}"
    return f"Besides, there is {what} ({p_value(shape.further.p)})."


def _order_p(verdict: Verdict) -> float:
    return verdict.recalibrated.order.p if verdict.recalibrated.order is not None else 1.0


def _miscalibrated(aging: Aging) -> list[str]:
    verdict = aging.verdict
    assert verdict.raw.order is not None
    p, rates = p_value(max(verdict.raw.order.p, verdict.raw.difference)), aging.base_rates
    found = "no change of the ranking was found."
    if aging.is_number:
        text = f"Level or scale of the target moved ({p}): predictions are off; no other change was found."
    elif verdict.base_rate_moved and rates is not None:
        moved = f"from {100 * rates[0]:.0f}% to {100 * rates[1]:.0f}%"
        text = f"The share of '{aging.base_rate_class}' moved {moved} ({p}); scores are off; {found}"
    elif aging.slope is not None and (aging.slope.high < 1 or aging.slope.low > 1):
        text = f"Old models are too {'sure' if aging.slope.high < 1 else 'timid'} of later periods ({p}); {found}"
    else:
        text = f"The probabilities of old models are off in later periods ({p}); {found}"
    return [text, *_few_periods(aging)]


def _few_periods(aging: Aging) -> list[str]:
    if len(aging.periods) >= FEW_PERIODS:
        return []
    return [f"With only {len(aging.periods)} periods an abrupt change may stay unnoticed; 12 or more are better."]


def _unordered(aging: Aging) -> list[str]:
    verdict = aging.verdict
    if verdict.is_odd:
        name = aging.periods[verdict.odd.index]
        sentences = [
            f"Period {name} is unlike all others ({p_value(verdict.odd.p)}). Look at the data of {name} before you "
            "look at the model."
        ]
        if verdict.odd.index == len(aging.periods) - 1:
            sentences.append("If this is a change, it is too recent to distinguish from a single odd period.")
        return sentences
    return [
        f"Periods differ, but not in the order of time ({p_value(verdict.recalibrated.difference)}): a model of the "
        "last period is as strange to the next one as a model of long ago. Train on more periods."
    ]


def _nothing(aging: Aging) -> list[str]:
    verdict, metric = aging.verdict, aging.metric
    order = verdict.recalibrated.order
    if order is None:
        return [f"{len(aging.periods)} periods are too few to tell order from chance (an audit needs {MIN_PERIODS})."]
    behind = aging.sizes.staleness.low > 0
    if verdict.only_ordered and not behind:
        return [f"Periods close in time are more alike ({p_value(order.p)}), at a cost too small to show."]
    if order.p <= LEVEL or behind:
        difference = p_value(verdict.recalibrated.difference)
        return [
            f"It is not certain that models age (order of periods {p_value(order.p)}, advantage of a period's own "
            f"model {difference}).",
            *_few_periods(aging),
        ]
    return [
        f"Nothing in this table shows that models age: a model of one period does as well in the others "
        f"({p_value(order.p)}). The audit would have noticed a loss of {metric.difference(aging.sizes.noticeable())}.",
        *_few_periods(aging),
    ]


def _difficulty(aging: Aging) -> list[str]:
    verdict, metric = aging.verdict, aging.metric
    if not verdict.changed_difficulty:
        return []
    course = verdict.course
    word = "harder" if verdict.harder else "easier"
    text = (
        f"The data got {word} ({p_value(course.p)}): a new model reaches {metric.title} {metric.text(course.first)} in "
        f"the first and {metric.text(course.last)} in the last periods."
    )
    calm = not (verdict.aged or verdict.miscalibrated or verdict.unordered) and aging.sizes.staleness.low <= 0
    if verdict.harder and calm:
        text += " Older models suffer no more than new ones; newer rows do not help."
    return [text]
