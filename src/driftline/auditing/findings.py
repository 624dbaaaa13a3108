"""What an audit says about aging and change. A sentence is written only if its test has passed."""

from __future__ import annotations

import math

import numpy as np

from driftline.auditing.aging import Aging
from driftline.auditing.change_date import ChangeDate
from driftline.auditing.estimate import Estimate
from driftline.auditing.metric import Metric
from driftline.auditing.shape import Shape
from driftline.auditing.verdict import MIN_PERIODS, Verdict
from driftline.auditing.wording import PeriodNames, plain_number, time_text, times_text

FEW_PERIODS = 12


def interval(metric: Metric, estimate: Estimate) -> str:
    """Return the 95 % interval in brackets."""
    if not math.isfinite(estimate.low):
        return "[–]"
    if metric.unit == "share":
        return f"[{100 * estimate.low:z.1f}, {100 * estimate.high:z.1f}]"
    return f"[{plain_number(estimate.low)}, {plain_number(estimate.high)}]"


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
    '14 May 2024 (between 12 May 2024 and 16 May 2024)'
    """
    values = (date.at, date.low, date.high)
    texts = [time_text(value) for value in values]
    if isinstance(date.at, np.datetime64) and texts[1] == texts[2]:
        texts = [f"{time_text(value)} {str(value.astype('datetime64[m]'))[11:]}" for value in values]
    return texts[0] if texts[1] == texts[2] else f"{texts[0]} (between {texts[1]} and {texts[2]})"


def when_text(date: ChangeDate) -> str:
    """Return the date of a change, as precisely as its interval is."""
    at, low, high = map(time_text, (date.at, date.low, date.high))
    if low == high:
        return f"{'on' if isinstance(date.at, np.datetime64) else 'at'} {at}"
    return f"around {at}" if isinstance(date.at, np.datetime64) else f"between {low} and {high}"


def findings(aging: Aging, names: PeriodNames) -> list[str]:
    """Return all sentences about aging, change and difficulty; `names`: the periods in words."""
    verdict = aging.verdict
    if not verdict.has_skill:
        return [
            f"Models of one period ({aging.training_rows:,} rows) are not surely better than a constant answer (the "
            "trivial baseline), so aging cannot be measured."
        ]
    if verdict.aged:
        sentences = _aged(aging, names)
    elif verdict.miscalibrated:
        sentences = _miscalibrated(aging)
    elif verdict.unordered:
        sentences = _unordered(aging, names)
    else:
        sentences = _nothing(aging)
    if not aging.has_probabilities and (verdict.aged or verdict.unordered):
        sentences.append(
            "The model gives no probabilities, so a moved base rate or more noise looks the same as a changed relation."
        )
    return [*sentences, *_difficulty(aging)]


def _aged(aging: Aging, names: PeriodNames) -> list[str]:
    verdict, sizes, metric = aging.verdict, aging.sizes, aging.metric
    shape, p = verdict.shape, p_value(max(_order_p(verdict), verdict.recalibrated.difference))
    assert shape is not None
    if aging.only_inputs_changed:
        return [
            f"The model ages ({p}): older models lose {amount(metric, sizes.staleness)} because later inputs are new "
            "to them; at equal inputs no change was found. Rows that cover these inputs help, whenever they were "
            "collected."
        ]
    sentences = _changes(aging, shape, p, names)
    if shape.further is not None:
        sentences.append(_further(aging))
    if sizes.staleness.low <= 0:
        most = metric.difference(max(sizes.staleness.high, 0))
        sentences.append(f"It changes measurably, but costs less than {most}.")
    return sentences


def _changes(aging: Aging, shape: Shape, p: str, names: PeriodNames) -> list[str]:
    """Return how the relation between inputs and target changed over time."""
    metric, dates = aging.metric, aging.verdict.dates
    if shape.kind == "abrupt":
        return [_cuts(aging, p)]
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
            f"{names.noun(aging.periods[shape.start])} to {names.noun(aging.periods[shape.end])} ({p}). A model loses "
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


def _cuts(aging: Aging, p: str) -> str:
    """Return when the relation changed, and what models of before lose since."""
    dates, losses = aging.verdict.dates, [amount(aging.metric, loss) for loss in aging.loss_since]
    on = "on" if isinstance(dates[0].at, np.datetime64) else "at"
    if len(dates) == 1:
        return (
            f"The model ages: {on} {date_text(dates[0])} the relation between inputs and target changed ({p}). "
            f"Since then an older model loses {losses[0]}."
        )
    each = [
        f"{on} {date_text(date)}, after which an older model loses {loss}"
        for date, loss in zip(dates, losses, strict=True)
    ]
    times = times_text(len(dates))
    return f"The model ages: the relation between inputs and target changed {times} ({p}): {'; '.join(each)}."


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
    found = _besides(aging)
    if aging.is_number:
        text = f"Level or scale of the target moved ({p}): predictions are off; {found}"
    elif verdict.base_rate_moved and rates is not None:
        moved = f"from {100 * rates[0]:.0f}% to {100 * rates[1]:.0f}%"
        text = f"The share of '{aging.base_rate_class}' moved {moved} ({p}); scores are off; {found}"
    elif aging.slope is not None and (aging.slope.high < 1 or aging.slope.low > 1):
        text = f"Old models are too {'sure' if aging.slope.high < 1 else 'timid'} of later periods ({p}); {found}"
    else:
        text = f"The probabilities of old models are off in later periods ({p}); {found}"
    return [text, *_few_periods(aging)]


def _besides(aging: Aging) -> str:
    """Return what is known of a change that recalibration does not repair."""
    verdict = aging.verdict
    if not verdict.recalibrated.significant:
        return "a changed relation between inputs and target was not found."
    if verdict.older_behind > verdict.newer_behind:
        return (
            "recalibration does not repair all of it. Older models are behind new ones, but newer models do well in "
            "older periods: later rows hold something new, such as a class, a category or a range of inputs."
        )
    return (
        "recalibration does not repair all of it. Newer models are behind in older periods, but older models are not "
        "behind in newer ones: later rows carry less information."
    )


def _few_periods(aging: Aging) -> list[str]:
    if len(aging.periods) >= FEW_PERIODS:
        return []
    return [f"With only {len(aging.periods)} periods an abrupt change may stay unnoticed; 12 or more are better."]


def _unordered(aging: Aging, names: PeriodNames) -> list[str]:
    verdict = aging.verdict
    if verdict.is_odd:
        name = names.noun(aging.periods[verdict.odd.index])
        sentences = [
            f"{name[:1].upper()}{name[1:]} is unlike all others ({p_value(verdict.odd.p)}). Look at its data before "
            "you look at the model."
        ]
        if verdict.odd.index == len(aging.periods) - 1:
            sentences.append("If this is a change, it is too recent to distinguish from a single odd period.")
        return sentences
    return [
        f"Periods differ, but not in the order of time ({p_value(verdict.recalibrated.difference)}): there is no "
        "evidence that a recent model does better than an old one. Train on more periods."
    ]


def _nothing(aging: Aging) -> list[str]:
    verdict, metric = aging.verdict, aging.metric
    order = verdict.recalibrated.order
    if order is None:
        return [f"{len(aging.periods)} periods are too few to tell order from chance (an audit needs {MIN_PERIODS})."]
    if verdict.only_ordered and not aging.is_behind:
        return [f"Periods close in time are more alike ({p_value(order.p)}), at a cost too small to show."]
    if aging.is_uncertain:
        difference = p_value(verdict.recalibrated.difference)
        return [
            f"It is not certain that models age (order of periods {p_value(order.p)}, advantage of a period's own "
            f"model {difference}).",
            *_few_periods(aging),
        ]
    return [
        f"Nothing in this table shows that models age: no loss by age is significant ({p_value(order.p)}). The audit "
        f"would have noticed a loss of {metric.difference(aging.sizes.noticeable())}.",
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
    calm = not (verdict.aged or verdict.miscalibrated or verdict.unordered) and not aging.is_behind
    if verdict.harder and calm:
        text += " There is no evidence that older models suffer more than new ones, so newer rows may not help."
    return [text]
