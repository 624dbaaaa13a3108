"""The numbers of an audit in words: four questions and their answers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from driftline.auditing.baseline import Baseline
from driftline.auditing.data import DataSummary
from driftline.auditing.decay import Decay, LogDecay
from driftline.auditing.estimate import MARGIN, Estimate, HorizonEstimate
from driftline.auditing.policies import NEVER, TRIVIAL, Policies
from driftline.auditing.shift import Shift

CAUSES = {
    "model": "The model becomes stale: new models stay as good as before, old ones do not.",
    "data": "The data become harder: new models lose as much as old ones, so retraining does not help.",
    "both": "Both: old models fall behind new ones, and new models are worse than they used to be.",
    "neither": "No decay: neither staleness nor harder data costs two points or more.",
    "unknown": "Even new models may explain nothing of the target, so there is no quality to lose and the other "
    "numbers mean little.",
}
SHIFTS = {
    "concept": "The relation between inputs and target changed.",
    "noise": "Equal inputs became harder to predict, for new models too: noise, or a missing feature.",
    "covariate": "The inputs moved; it is not certain that their relation to the target changed by two points or more.",
    "none": "Neither the inputs nor their relation to the target changed by much, as far as is certain.",
    "unknown": "",
}


@dataclass(frozen=True)
class Answer:
    """A question and its answer."""

    question: str
    text: str


def points(value: float, sign: bool = False) -> str:
    """Return a share as percentage points, or a dash if it is not known.

    >>> points(0.1234), points(0.02, sign=True), points(math.nan)
    ('12.3', '+2.0', '–')
    """
    return f"{100 * value:{'+' if sign else ''}.1f}" if math.isfinite(value) else "–"


def interval(estimate: Estimate, scale: float = 100) -> str:
    """Return the 95 % interval in brackets."""
    if not math.isfinite(estimate.low):
        return "[–]"
    return f"[{scale * estimate.low:.1f}, {scale * estimate.high:.1f}]"


def describe_policy(policy: str) -> str:
    """Return what a policy does.

    >>> describe_policy("every-4")
    'retrain every 4 periods, on all rows so far'
    """
    kind, _, rest = policy.partition("-")
    descriptions = {
        "never": "train once, never again",
        "all": "retrain each period, on all rows so far",
        "window": f"retrain each period, on the last {rest}",
        "every": f"retrain every {rest} periods, on all rows so far",
        "trivial": "baseline: no model, the most frequent class, or the mean, of all rows so far",
    }
    trigger = "the online TAS falls below 0.95" if rest == "online-tas" else f"the detector {rest} fires"
    return descriptions.get(kind, f"retrain when {trigger}, on the latest periods")


def decay_answer(decay: Decay | LogDecay, baseline: Baseline, metric: str) -> Answer:
    """Say how much quality is lost, and whether the model or the data are the cause."""
    own, later = decay.first_own, decay.first_later
    quality = (
        f"has {points(own.value)}% {metric} {interval(own)} in the first period (n = {own.n:,}) and "
        f"{points(later.value)}% {interval(later)} on average later (n = {later.n:,})"
    )
    if isinstance(decay, Decay):
        text = f"The model of the first period {quality}. {CAUSES[decay.cause]} {_staleness(decay)}"
    else:
        text = (
            f"The logged model {quality}. Without new models to compare with, a stale model cannot be distinguished "
            "from harder data."
        )
    question = "How fast does quality decay, and is it the model or the data?"
    return Answer(question, f"{text} {_baseline(baseline, metric)}")


def _staleness(decay: Decay) -> str:
    ages, tas = decay.loss_by_age, decay.tas
    middle = len(ages) // 2
    return (
        f"An old model is {points(decay.staleness.value)} points {interval(decay.staleness)} behind a new one: "
        f"{points(ages[0].value)} after one period, {points(ages[middle].value)} after {1 + middle}. "
        f"{_new_models(decay.harder)} TAS = {_with_interval(tas)} (n = {tas.n} models; 1 means no loss by age)."
    )


def _new_models(harder: Estimate) -> str:
    if not harder.is_known:
        return "New models have no score in one half of the time, so it is not known whether the data become harder."
    return (
        f"New models change by {points(-harder.value, True)} points [{points(-harder.high)}, {points(-harder.low)}] "
        "from the first to the second half of the time."
    )


def _with_interval(estimate: Estimate) -> str:
    """Return a ratio with three digits and its interval, or a dash."""
    if not (estimate.is_known and math.isfinite(estimate.low)):
        return "–"
    return f"{estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]"


def _baseline(baseline: Baseline, metric: str) -> str:
    quality, above = baseline.fresh or baseline.first_own, baseline.above
    tas = f", TAS = {_with_interval(baseline.tas)}" if baseline.tas else ""
    text = f"Trivial baseline ({baseline.protocol}): {points(quality.value)}% {metric} {interval(quality)}{tas}."
    if above.is_positive or not math.isfinite(above.low):
        return text
    return (
        f"{text} Caution: the model is not significantly better than the baseline in its own period "
        f"({points(above.value, True)} points {interval(above)}), so TAS, SH and DH say little about it."
    )


def horizon_answer(decay: Decay | LogDecay, data: DataSummary, metric: str) -> Answer:
    """Say how long models stay valid and when decay becomes evident."""
    length = f" ({data.length})" if data.length else ""
    drift = _drift_horizon(decay.dh, data.unit, len(data.periods) - 1)
    if not isinstance(decay, Decay):
        text = f"{drift[:-1]}{length}. How long it is valid (SH) is not known, as there are no new models."
    elif not decay.sh.is_known:
        text = f"How long a model is valid (SH) is not known: no new model of some period is of any use. {drift}"
    else:
        sh, delta = decay.sh, decay.matrix.delta
        bound = f", {sh.censored} of them until the data end: a lower bound" if sh.censored else ""
        text = (
            f"A model keeps {100 * delta:g}% of a new model's {metric} for {sh.value:.1f} {data.unit} "
            f"{interval(sh, 1)} on average{length} (SH; n = {sh.n} models{bound}{_chance(sh)}); the shortest for "
            f"{decay.sh_minimum.value:.0f}. {drift}"
        )
    return Answer("How long is a model valid, and when is its decay evident?", text)


def _drift_horizon(dh: HorizonEstimate, unit: str, later_periods: int) -> str:
    if not dh.is_known:
        return "When decay becomes evident (DH) is not known: no model has a score in every period that is needed."
    limit = later_periods if dh.limit is None else dh.limit
    never = f", {dh.censored} never, counted as one more than {limit}" if dh.censored else ""
    return (
        f"Decay becomes evident after {dh.value:.1f} {unit} {interval(dh, 1)} on average (DH: accumulated drops beyond "
        f"noise and 1 point exceed 15 points; n = {dh.n}{never}{_chance(dh)})."
    )


def _chance(horizon: HorizonEstimate) -> str:
    return f"; without drift it would end for {horizon.false_alarm:.0%} of models"


def shift_answer(shift: Shift | None, decay: Decay | LogDecay, data: DataSummary) -> Answer:
    """Say which inputs moved, and whether their relation to the target changed."""
    question = "What changed?"
    if shift is None:
        return Answer(question, "There are no feature columns, so nothing is known about the inputs.")
    changed, aucs = shift.changed_features, {name: loss.auc for name, loss in shift.periods.items()}
    far = max(aucs, key=lambda name: aucs[name].value)
    named = "; ".join(f"'{row.feature}' by {row.largest:.2f} at {row.largest_at}" for row in changed[:3])
    text = (
        f"{_time_proxies(data)}Inputs: {len(changed)} of {len(shift.features)} features moved by 0.1 or more from the "
        f"first period (distance from 0 to 1, adjusted p < 0.05){f': {named}' if named else ''}. A classifier "
        f"distinguishes the first period from {far} with AUC {aucs[far].value:.2f} "
        f"[{aucs[far].low:.2f}, {aucs[far].high:.2f}] (0.5 is chance). "
    )
    return Answer(question, text + _losses(shift, decay))


def _time_proxies(data: DataSummary) -> str:
    """Return a warning about features that identify the time or the row."""
    if not data.time_proxies:
        return ""
    named = ", ".join(f"'{name}'" for name in data.time_proxies)
    others = ",".join(name for name in data.features if name not in data.time_proxies)
    verb, them = ("identifies", "it") if len(data.time_proxies) == 1 else ("identify", "them")
    advice = f' Exclude {them} with --features "{others}".' if others else ""
    return f"Warning: {named} {verb} the time or the row, so every later row looks new.{advice} "


def _losses(shift: Shift, decay: Decay | LogDecay) -> str:
    overall, periods = shift.overall, shift.periods.values()
    if not overall.periods:
        if any(loss.overlap >= 0.5 for loss in periods):
            n = max(loss.n_first for loss in periods)
            return f"The first period has too few held-out rows (n = {n}) to compare errors at equal inputs."
        return "No later period overlaps enough with the first to compare errors at equal inputs."
    covariate, conditional = overall.covariate, overall.conditional
    uneven = [row for row in shift.uneven_features if row.p < 0.05 and row.spread >= MARGIN]
    place = f", most unevenly along '{uneven[0].feature}' (worst {uneven[0].worst})" if uneven else ""
    return (
        f"Target: of the {points(overall.total.value)} points that the first model lost, {points(covariate.value)} "
        f"{interval(covariate)} are due to the new mix of inputs and {points(conditional.value)} "
        f"{interval(conditional)} arise at equal inputs{place} ({overall.periods} of {len(periods)} later periods "
        f"overlap enough; n = {conditional.n:,}). {SHIFTS[shift.kind(decay)]}"
    )


def policy_answer(
    policies: Policies | None, alarms: Mapping[str, Sequence[str]], notes: Sequence[str], metric: str
) -> Answer:
    """Recommend a policy, or say when detectors would have fired on a log."""
    question, skipped = "When should it have been retrained?", "".join(f" {note}." for note in notes)
    if policies is None:
        fired = "; ".join(f"{name}: {', '.join(periods[:5]) or 'never'}" for name, periods in alarms.items())
        return Answer(question, skipped.lstrip() + (f" Detectors would have fired in: {fired}." if fired else ""))
    chosen, best, never = policies.recommended, policies.best, policies[NEVER]
    reason = "it is the best"
    if chosen is not best:
        reason = (
            f"it is {points(chosen.behind.value)} points {interval(chosen.behind)} behind the best ({best.policy}, "
            f"{points(best.quality.value)}%), and trains on {chosen.rows:,} rows instead of {best.rows:,}"
        )
    caution = ""
    if chosen.above_trivial.low <= 0:
        caution = (
            " Caution: it is not significantly better than the trivial baseline, a constant answer "
            f"({points(policies[TRIVIAL].quality.value)}%)."
        )
    times = "1 retraining" if chosen.retrainings == 1 else f"{chosen.retrainings} retrainings"
    text = (
        f"Recommended: {chosen.policy} ({describe_policy(chosen.policy)}). In the replay it reaches "
        f"{points(chosen.quality.value)}% {metric} {interval(chosen.quality)} (n = {chosen.quality.n:,}) with {times}, "
        f"{points(chosen.gained.value, True)} points {interval(chosen.gained)} against never retraining "
        f"({points(never.quality.value)}%): {reason}. The rule: {policies.recommendation.rule}.{skipped}{caution}"
    )
    return Answer(question, text)
