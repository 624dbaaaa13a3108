"""The verdict of an audit in one word, two sentences and four rows: what the page and the terminal show first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from driftline.auditing.aging import Aging
from driftline.auditing.data import DataSummary
from driftline.auditing.estimate import Estimate
from driftline.auditing.findings import amount, behind_text, interval, p_value, when_text
from driftline.auditing.policies import PolicyResult
from driftline.auditing.recommendation import Policies
from driftline.auditing.replay import ALL_HISTORY, NEVER, RECALIBRATE
from driftline.auditing.verdict import MIN_PERIODS
from driftline.auditing.wording import (
    PeriodNames,
    plain_number,
    policy_action,
    policy_done,
    policy_name,
    time_text,
    times_text,
)
from driftline.report.format import count_of

Tone = Literal["act", "keep", "unclear"]


@dataclass(frozen=True)
class SummaryRow:
    """One row of the verdict: its topic, the answer, and details."""

    label: str
    answer: str
    detail: str = ""
    note: str = ""


@dataclass(frozen=True)
class Summary:
    """The verdict in words."""

    word: str
    tone: Tone
    sentences: tuple[str, ...]
    rows: tuple[SummaryRow, ...]

    def __str__(self) -> str:
        """Return the verdict as lines of text."""
        width = max(len(row.label) for row in self.rows)
        lines = [f"{row.label:<{width}}  {' '.join([*_joined(row), *_bracketed(row.note)])}" for row in self.rows]
        return "\n".join([self.word, " ".join(self.sentences), "", *lines])


def _joined(row: SummaryRow) -> list[str]:
    return [part for part in (row.answer, row.detail) if part]


def _bracketed(note: str) -> list[str]:
    return [f"({note})"] if note else []


def summarize_model(aging: Aging, policies: Policies, data: DataSummary) -> Summary:
    """Return the verdict about a model that can be trained."""
    word, tone = _word(aging, policies)
    rows = (_gain(aging, policies, data), _cause(aging, policies), _certainty(aging, policies, tone))
    last = _cost(policies) if policies.costs.given else _if_costly(aging, policies, data)
    return Summary(
        word,
        tone,
        (_finding(aging, policies, data.names), _action(aging, policies, data, word)),
        (*rows, last),
    )


def compared_policy(policies: Policies, deployed: int) -> PolicyResult:
    """Return the policy that is compared with never retraining: the recommended one, or retraining each period."""
    chosen = policies.recommended
    return policies[f"window-{deployed}"] if chosen.policy == NEVER else chosen


def _word(aging: Aging, policies: Policies) -> tuple[str, Tone]:
    verdict, policy = aging.verdict, policies.recommendation.policy
    if not verdict.has_skill:
        return "Not certain" if _periods_are_short(aging, policies) else "Inspect", "unclear"
    if policy == RECALIBRATE:
        return "Recalibrate", "act"
    if policy != NEVER:
        return "Retrain", "act"
    if verdict.is_odd:
        return "Inspect", "unclear"
    made = policies.recommendation
    if made.reason == "not-sure" or verdict.recalibrated.order is None or _gains_without_aging(policies):
        return "Not certain", "unclear"
    return "Keep it", "keep"


def _gains_without_aging(policies: Policies) -> bool:
    """Return whether newer rows surely gained, although no aging was found."""
    made = policies.recommendation
    return made.reason == "no-aging" and made.newer_rows.low > 0


def _periods_are_short(aging: Aging, policies: Policies) -> bool:
    """Return whether models of one period have no skill, but those of more rows, in the best policy, surely have."""
    return not aging.verdict.has_skill and policies.best.above_trivial.low > 0


def _finding(aging: Aging, policies: Policies, names: PeriodNames) -> str:
    """Return what was found, in one sentence."""
    verdict = aging.verdict
    if _periods_are_short(aging, policies):
        return "Models of one period are not surely better than a constant answer, so aging cannot be measured."
    if not verdict.has_skill:
        return "The model is not surely better than a constant answer."
    if verdict.aged:
        return _change(aging, names)
    if verdict.miscalibrated and verdict.harder:
        return "The data got harder for new models too, and old ones are off in later periods."
    if verdict.miscalibrated:
        return _miscalibration(aging)
    if verdict.is_odd:
        name = names.noun(aging.periods[verdict.odd.index])
        return f"{name[:1].upper()}{name[1:]} is unlike all others."
    if verdict.unordered:
        return "Periods differ, but not in the order of time."
    if verdict.harder:
        return "The data got harder, for new models too."
    if verdict.recalibrated.order is None:
        return f"{len(aging.periods)} periods are too few to tell order from chance (at least {MIN_PERIODS})."
    if aging.is_uncertain:
        return "It is not certain that models age."
    return "Nothing in this table shows that models age."


def _change(aging: Aging, names: PeriodNames) -> str:
    verdict, relation = aging.verdict, "The relation between inputs and target"
    shape, dates = verdict.shape, [when_text(date) for date in verdict.dates]
    assert shape is not None
    if aging.only_inputs_changed:
        return "Later inputs are new to older models, which fall behind."
    if shape.kind == "abrupt":
        times = f"{times_text(len(dates))}, last" if len(dates) > 1 else ""
        return f"{' '.join([relation, 'changed', *([times] if times else []), dates[-1]])}."
    if shape.kind == "temporary":
        begin, end = (time_text(date.at) for date in verdict.dates)
        return f"{relation} changed for a time, from {begin} until {end}."
    if shape.kind == "gradual" and shape.start is not None:
        return f"{relation} changes gradually since {names.noun(aging.periods[shape.start])}."
    if shape.kind == "recurring" and shape.cycle is not None:
        return f"{relation} changes in a cycle of {aging.age(shape.cycle)}."
    return f"{relation} changes over time."


def _miscalibration(aging: Aging) -> str:
    rates = aging.base_rates
    if aging.is_number:
        return "Level or scale of the target moved, so predictions are off."
    if aging.verdict.base_rate_moved and rates is not None:
        moved = f"from {100 * rates[0]:.0f}% to {100 * rates[1]:.0f}%"
        return f"The share of '{aging.base_rate_class}' moved {moved}, so probabilities are off."
    return "The probabilities of old models are off in later periods."


def _action(aging: Aging, policies: Policies, data: DataSummary, word: str) -> str:
    """Return what to do, in one sentence."""
    verdict, made = aging.verdict, policies.recommendation
    if made.policy != NEVER:
        return f"{policy_action(made.policy, data.unit, data.deployed)}."
    if _periods_are_short(aging, policies):
        return "Audit it again with longer periods (--period) or more rows."
    if not verdict.has_skill:
        return "Look for better inputs or more rows before you think of retraining."
    if verdict.is_odd:
        return "Look at the data of that period before you look at the model."
    if made.reason == "not-sure":
        return "No retraining surely gains on this table."
    if _gains_without_aging(policies):
        return "Newer rows gained all the same: audit it again when there are more periods."
    if word == "Not certain":
        return "Audit it again when there are 12 periods or more."
    if verdict.unordered:
        return "Train on more periods; no retraining by the calendar is needed."
    if policies.gains_by_more_rows:
        return "No retraining by the calendar is needed, but more rows would help."
    return "Keep the model as it is; no retraining by the calendar is needed."


def _gain(aging: Aging, policies: Policies, data: DataSummary) -> SummaryRow:
    metric, never = aging.metric, policies[NEVER]
    compared = compared_policy(policies, data.deployed)
    instead = f"{metric.text(compared.quality.value)} instead of {metric.text(never.quality.value)}"
    gain, ends = metric.difference(compared.gained.value, sign=True), interval(metric, compared.gained)
    if compared is policies.recommended:
        return SummaryRow("Gain", gain, ends, instead)
    how = policy_done(compared.policy, data.unit).removeprefix("retrained ")
    sure = "certain" if compared.gained.low > 0 else "certainly worse" if compared.gained.high < 0 else "not certain"
    return SummaryRow("Gain", gain, f"{ends} if retrained {how}: {sure}", instead)


def _cause(aging: Aging, policies: Policies) -> SummaryRow:
    verdict, metric, sizes = aging.verdict, aging.metric, aging.sizes
    behind = behind_text(metric, sizes.staleness)
    made = policies.recommendation
    parts = f"newer rows {_signed(aging, made.newer_rows)}, more rows {_signed(aging, made.more_rows)}"
    course, word = verdict.course, "harder" if verdict.harder else "easier"
    course_text = f"{metric.text(course.first)} to {metric.text(course.last)} for a new model"
    also = f"the data also got {word}, from {course_text}; " if verdict.changed_difficulty else ""
    if not verdict.has_skill:
        return SummaryRow("Cause", "Not known:", f"{amount(metric, sizes.above, sign=True)} against a constant answer")
    if verdict.aged:
        return SummaryRow("Cause", "The model ages:", behind, also + parts)
    if verdict.miscalibrated:
        besides = (
            "recalibration does not repair all of it"
            if verdict.recalibrated.significant
            else "no changed relation was found"
        )
        return SummaryRow("Cause", "Predictions are off:", f"{behind}; {besides}", also + parts)
    if verdict.changed_difficulty:
        return SummaryRow("Cause", f"The data got {word}:", course_text, f"an old model is {behind}")
    if verdict.unordered:
        return SummaryRow("Cause", "Periods differ, not by age:", f"other models are {behind}", parts)
    answer = "Behind, but not surely by age:" if aging.is_behind else "No aging found:"
    return SummaryRow("Cause", answer, behind, parts)


def _signed(aging: Aging, estimate: Estimate) -> str:
    return amount(aging.metric, estimate, sign=True).replace(" points", "")


def _certainty(aging: Aging, policies: Policies, tone: Tone) -> SummaryRow:
    verdict, metric, chosen = aging.verdict, aging.metric, policies.recommended
    tests = verdict.raw if verdict.miscalibrated else verdict.recalibrated
    p = "" if tests.order is None else f"order in time {p_value(tests.order.p)}"
    replayed = f"{chosen.quality.n:,} answers replayed, none trained on before its time"
    if chosen.above_trivial.low <= 0:
        trivial = "it is not surely better than a constant answer"
        return SummaryRow("How sure", "Not certain:", trivial, replayed)
    if tone == "act":
        sure = chosen.gained.low > 0
        answer, what = ("Sure:", "above 0") if sure else ("Not certain:", "not above 0")
        return SummaryRow("How sure", answer, f"the interval of the gain is {what}", f"{replayed}; {p}")
    if verdict.aged or verdict.miscalibrated:
        return SummaryRow("How sure", "Sure of the change, not of a gain:", p, replayed)
    if verdict.unordered:
        different = p_value(verdict.odd.p if verdict.is_odd else verdict.recalibrated.difference)
        return SummaryRow("How sure", "Differences between periods:", different, f"{p}; {replayed}" if p else replayed)
    if verdict.recalibrated.order is None:
        return SummaryRow("How sure", "Not certain:", "too few periods to tell order from chance", replayed)
    if aging.is_uncertain:
        return SummaryRow("How sure", "Not certain of aging:", p, replayed)
    noticed = f"a loss of {metric.difference(aging.sizes.noticeable())} would have been noticed"
    return SummaryRow("How sure", noticed[:1].upper() + noticed[1:], "", f"{p}; {replayed}" if p else replayed)


def cheaper_policy(policies: Policies) -> PolicyResult | None:
    """Return the best compromise with fewer retrainings that surely gains: far up and far left on the frontier."""
    chosen, never = policies.recommended, policies[NEVER]
    total = policies.best.gained.value
    fewer = [r for r in policies.results if r.on_frontier and r.gained.low > 0 and r.retrainings < chosen.retrainings]
    if chosen is never or total <= 0:
        return None
    return max(fewer, key=lambda r: r.gained.value / total - r.retrainings / chosen.retrainings, default=None)


def _if_costly(aging: Aging, policies: Policies, data: DataSummary) -> SummaryRow:
    metric, chosen, best, cheaper = aging.metric, policies.recommended, policies.best, cheaper_policy(policies)
    if chosen.policy == NEVER and _gains_without_aging(policies):
        name, gain = policy_name(policies.best.policy, data.unit), amount(metric, policies.best.gained, sign=True)
        return SummaryRow(
            "If retrained", f"{name}:", f"{gain} with {count_of(policies.best.retrainings, 'retraining')}"
        )
    if chosen.policy == NEVER:
        if policies.gains_by_more_rows:
            gain = amount(metric, policies[ALL_HISTORY].gained, sign=True)
            each = f"All history each {data.unit.removesuffix('s')}"
            return SummaryRow("If cheap", each, f"gains {gain}, as it has more rows")
        return SummaryRow("If costly", "Nothing to save:", "no retraining is recommended")
    if cheaper is None:
        return SummaryRow("If costly", "Nothing cheaper", "surely gains")
    name = policy_name(cheaper.policy, data.unit)
    times = f"{count_of(cheaper.retrainings, 'retraining')} instead of {chosen.retrainings}"
    behind = f"{amount(metric, cheaper.behind)} behind {'it' if chosen is best else 'the best'}"
    return SummaryRow("If costly", f"{name}:", f"{times}, {behind}")


def _cost(policies: Policies) -> SummaryRow:
    chosen, never = policies.recommended, policies[NEVER]
    cost, alone = (plain_number(result.cost or 0.0, digits=4) for result in (chosen, never))
    note = "" if chosen is never else f"never retrained: {alone}"
    return SummaryRow("Cost", cost, "per 1,000 answers, retrainings included", note)
