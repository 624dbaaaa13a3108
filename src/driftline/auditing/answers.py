"""The result of an audit in words: four questions and their answers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from driftline.auditing.aging import Aging
from driftline.auditing.data import DataSummary
from driftline.auditing.estimate import Estimate
from driftline.auditing.findings import amount, behind_text, findings, interval, p_value
from driftline.auditing.horizons import AgeCurve, Horizon
from driftline.auditing.label_shift import DistributionShift, LabelShift
from driftline.auditing.log_quality import LogQuality
from driftline.auditing.metric import Metric
from driftline.auditing.policies import TRIVIAL
from driftline.auditing.recommendation import Policies
from driftline.auditing.replay import ALL_HISTORY, NEVER, RECALIBRATE
from driftline.auditing.shift import Shift
from driftline.auditing.wording import DETECTORS, PeriodNames, plain_number


@dataclass(frozen=True)
class Answer:
    """A question and its answer."""

    question: str
    text: str


@dataclass(frozen=True)
class Horizons:
    """How long models last."""

    sh: Horizon
    """Until they fall below `delta` of a new one."""
    dh: Horizon
    """Until drops below their own period accumulate to 15 points."""
    curve: AgeCurve
    delta: float


def describe_policy(policy: str) -> str:
    """Return what a policy does.

    >>> describe_policy("every-4")
    'retrain every 4 periods, on the latest ones'
    """
    kind, _, rest = policy.partition("-")
    every = rest.removesuffix("-all")
    rows = "on all rows so far" if rest.endswith("-all") else "on the latest ones"
    descriptions = {
        "never": "train once, never again",
        "all": "retrain each period, on all rows so far",
        "window": f"retrain each period, on the last {rest}",
        "every": f"retrain every {every} periods, {rows}",
        "same": "train on the same season of earlier cycles",
        "recalibrate": "keep the model, recalibrate it each period",
        "trivial": "baseline: no model, a constant answer of all rows so far",
    }
    triggers = {
        "online-tas": "the online TAS of the last 3 periods falls below 0.95",
        "error-rate": "the error of a period is more than 3 standard errors above that in training",
    }
    return descriptions.get(kind, f"retrain when {triggers.get(rest, f'the detector {rest} fires')}, on the rows since")


def aging_answer(aging: Aging | None, log: LogQuality | None, names: PeriodNames) -> Answer:
    """Say whether the model aged or the data got harder, and how much it costs."""
    question = "Did the model age, or did the data get harder?"
    if aging is None:
        assert log is not None
        return Answer(question, _log_quality(log))
    sizes, metric = aging.sizes, aging.metric
    text = " ".join(findings(aging, names))
    text += (
        f" A new model reaches {metric.title} {metric.text(sizes.fresh.value)} {interval(metric, sizes.fresh)}, an "
        f"older one {metric.text(sizes.old.value)} {interval(metric, sizes.old)} in the same period: "
        f"{behind_text(metric, sizes.staleness)} (models of {aging.training_rows:,} rows)."
    )
    if sizes.tas.is_known and aging.verdict.has_skill:
        text += f" TAS = {_ratio(sizes.tas)} (1 means no loss by age)."
    return Answer(question, f"{text} {_baseline(sizes.baseline, sizes.above, metric)}")


def _baseline(baseline: Estimate, above: Estimate, metric: Metric) -> str:
    text = f"Trivial baseline (a constant answer): {metric.text(baseline.value)}."
    if above.low > 0 or not math.isfinite(above.low):
        return text
    return f"{text} Caution: the model is not significantly better than it ({amount(metric, above, sign=True)})."


def _ratio(estimate: Estimate) -> str:
    return f"{estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]"


def _log_quality(log: LogQuality) -> str:
    metric = log.metric
    text = (
        f"The logged model reaches {metric.title} {metric.text(log.first_own.value)} {interval(metric, log.first_own)} "
        f"in the first period and {metric.text(log.first_later.value)} {interval(metric, log.first_later)} later. "
    )
    if log.changed:
        word = "worse" if log.worse else "better"
        text += (
            f"It got {word} over time ({p_value(log.course.p)}), from {metric.text(log.course.first)} to "
            f"{metric.text(log.course.last)}. "
        )
    else:
        text += f"No trend or step is significant ({p_value(log.course.p)}). "
    text += "Without new models to compare with, an aged model and harder data look the same. "
    return text + _baseline(log.baseline, log.above, metric)


def horizon_answer(horizons: Horizons | None, aging: Aging | None, length: str) -> Answer:
    """Say how long models last; a number of periods only if the order of time matters."""
    question = "How long does a model last?"
    if aging is None:
        return Answer(question, "Not known: a log has no new models to compare with.")
    if horizons is None or not aging.verdict.has_skill:
        return Answer(question, "Not known: new models have too little skill for a ratio to it.")
    delta, curve = f"{100 * horizons.delta:g}%", horizons.curve
    size = f" ({length})" if length else ""
    limit = aging.age(horizons.sh.limit)
    if curve.horizon is not None:
        at = curve.by_age[curve.horizon - 1]
        text = (
            f"After {aging.age(curve.horizon)}{size} an old model falls surely below {delta} of a new one "
            f"({100 * at.value:.0f}% [{100 * at.low:.0f}, {100 * at.high:.0f}])."
        )
        if not (aging.verdict.aged or aging.verdict.miscalibrated):
            text += " Age was not found to be the cause."
    else:
        text = f"No horizon: within {limit}{size} old models do not surely fall below {delta} of a new one."
    names = (("SH", horizons.sh, f"below {delta} of a new one"), ("DH", horizons.dh, "15 points of accumulated drops"))
    return Answer(question, " ".join([text, *(_survival(name, h, what, aging) for name, h, what in names)]))


def _survival(name: str, horizon: Horizon, what: str, aging: Aging) -> str:
    """Return the survival of single models, with what permuted periods give."""
    k = aging.pieces
    if horizon.events == 0:
        return f"{name} ({what}): not seen within {aging.age(horizon.limit)}."
    median = "" if horizon.median is None else f", half of the models by {aging.age(horizon.median)}"
    text = (
        f"{name} ({what}): {aging.age(horizon.value)} [{horizon.low / k:.3g}, {horizon.high / k:.3g}] on average "
        f"within {aging.age(horizon.limit)}{median}; "
    )
    if aging.verdict.aged and horizon.depends_on_order:
        return f"{text}longer than in permuted periods ({horizon.permuted / k:.3g}, {p_value(horizon.p)})."
    if horizon.depends_on_order:
        permuted = f"{horizon.permuted / k:.3g} ({p_value(horizon.p)})"
        return f"{text}permuted periods give {permuted}, but no aging was found."
    return f"{text}within noise: permuted periods give {horizon.permuted / k:.3g}, so it says nothing about aging."


def shift_answer(shift: Shift | None, labels: LabelShift, data: DataSummary, harmless: bool) -> Answer:
    """Say which inputs, labels and predictions moved."""
    texts = [] if shift is None else _inputs(shift, harmless, data.names)
    if shift is None:
        texts.append("There are no feature columns, so nothing is known about the inputs.")
    texts.append(_distribution("Labels", labels.labels))
    if labels.predictions is not None:
        whose = "Logged predictions" if data.prediction else "Predictions of the first model"
        texts.append(_distribution(whose, labels.predictions))
    within = labels.within_classes
    if labels.labels.significant and within is not None and not within.significant:
        texts.append(f"Within classes no significant shift of its scores was found ({p_value(within.p)}).")
    return Answer("What changed?", " ".join([*(f"Warning: {w}." for w in data.warnings), *texts]))


def _distribution(what: str, shift: DistributionShift) -> str:
    if not shift.significant:
        return f"{what}: no significant shift ({p_value(shift.p)})."
    if shift.moved is None:
        first, last = (plain_number(mean, digits=4) for mean in (shift.first, shift.last))
        return f"{what}: the mean moved from {first} to {last} ({p_value(shift.p)})."
    return (
        f"{what}: the share of '{shift.moved}' moved from {100 * shift.first:.1f}% to {100 * shift.last:.1f}% "
        f"({p_value(shift.p)})."
    )


def _inputs(shift: Shift, harmless: bool, names: PeriodNames) -> list[str]:
    changed = shift.changed_features
    named = "; ".join(f"'{row.feature}' by {row.largest:.2f} {names.within(row.largest_at)}" for row in changed[:3])
    texts = [
        f"Inputs: {len(changed)} of {len(shift.features)} features moved by 0.1 or more from the first period "
        f"(distance from 0 to 1, adjusted p < 0.05){f': {named}' if named else ''}.",
        _all_inputs(shift, names),
    ]
    if changed and harmless:
        texts.append("This did no measured harm to old models.")
    return texts


def _all_inputs(shift: Shift, names: PeriodNames) -> str:
    """Say whether all inputs together tell a period from the first."""
    name, auc = shift.farthest
    if auc.low <= 0.5:
        return (
            "A classifier does not surely distinguish the first period from any later one "
            f"(AUC at most {auc.value:.2f}; 0.5 is chance)."
        )
    return (
        f"A classifier distinguishes the first period from {names.noun(name)} with AUC {auc.value:.2f} "
        f"[{auc.low:.2f}, {auc.high:.2f}] (0.5 is chance)."
    )


def policy_answer(
    policies: Policies | None,
    aging: Aging | None,
    alarms: Mapping[str, Sequence[str]],
    notes: Sequence[str],
    names: PeriodNames,
) -> Answer:
    """Recommend a policy, or say when detectors would have fired on a log."""
    question, skipped = "When should it be retrained?", "".join(f" {note}." for note in notes)
    if policies is None or aging is None:
        fired = "; ".join(
            f"{DETECTORS.get(name, name)}: {', '.join(map(names.noun, periods[:5])) or 'never'}"
            for name, periods in alarms.items()
        )
        return Answer(question, f"{skipped} {f'When detectors would have fired: {fired}.' if fired else ''}".strip())
    metric, chosen = aging.metric, policies.recommended
    text = f"{headline(policies)}. {_reason(policies, aging)} {_replayed(policies, metric)}"
    if chosen.above_trivial.low <= 0:
        trivial = metric.text(policies[TRIVIAL].quality.value)
        text += f" Caution: it is not significantly better than the trivial baseline, a constant answer ({trivial})."
    return Answer(question, text + skipped)


def headline(policies: Policies) -> str:
    """Return the recommendation in a few words."""
    chosen = policies.recommended
    if chosen.policy == RECALIBRATE:
        return "Recalibrate, do not retrain"
    if chosen.policy == NEVER:
        return "No retraining by the calendar"
    return f"Retrain: {describe_policy(chosen.policy).removeprefix('retrain ')}"


def _reason(policies: Policies, aging: Aging) -> str:
    metric, made = aging.metric, policies.recommendation
    chosen, best = policies.recommended, policies.best
    newer, more = amount(metric, made.newer_rows, sign=True), amount(metric, made.more_rows, sign=True)
    parts = f"Newer rows gain {newer}, more rows {more}."
    if made.reason == "unknown":
        return "Models of one period are not surely better than a constant answer."
    if made.reason == "no-aging":
        found = "No aging was found." if aging.verdict.recalibrated.order is not None else "Periods are too few."
        if made.newer_rows.low > 0:
            return f"{found} All the same, {parts[:1].lower()}{parts[1:]}"
        if not policies.gains_by_more_rows:
            return found
        history = amount(metric, policies[ALL_HISTORY].gained, sign=True)
        return f"{found} More rows would help: retraining on all history gains {history}."
    if made.reason == "not-sure" and best.policy == NEVER:
        return f"On this table no policy is better. {parts}"
    if made.reason == "not-sure":
        gain = amount(metric, best.gained, sign=True)
        return f"On this table retraining gains nothing sure: {gain}. {parts}"
    if made.reason == "recalibrate":
        return f"No retraining is surely better than recalibration. {parts}"
    if made.reason == "cheapest":
        cost, alone = (plain_number(result.cost or 0.0, digits=4) for result in (chosen, policies[NEVER]))
        return f"It is the cheapest at {cost} per 1,000 answers (never: {alone}). {parts}"
    if chosen is best:
        return f"It is the best. {parts}"
    behind = amount(metric, chosen.behind)
    return f"It is the knee: {behind} behind the best ({best.policy}, {best.retrainings} retrainings). {parts}"


def _replayed(policies: Policies, metric: Metric) -> str:
    chosen, never = policies.recommended, policies[NEVER]
    times = "1 retraining" if chosen.retrainings == 1 else f"{chosen.retrainings} retrainings"
    text = (
        f"In the replay policy '{chosen.policy}' reaches {metric.title} {metric.text(chosen.quality.value)} "
        f"{interval(metric, chosen.quality)} (n = {chosen.quality.n:,}) with {times}"
    )
    if chosen is never:
        return f"{text}."
    gain = amount(metric, chosen.gained, sign=True)
    return f"{text}, {gain} against never retraining ({metric.text(never.quality.value)})."
