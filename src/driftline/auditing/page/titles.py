"""Titles of an audit's charts. Each states a finding with its size, and another one is chosen if it does not hold."""

from __future__ import annotations

import numpy as np

from driftline.auditing.page.view import View
from driftline.auditing.policies import TRIVIAL, PolicyResult
from driftline.auditing.replay import NEVER, RECALIBRATE
from driftline.auditing.summary import compared_policy
from driftline.auditing.wording import typeset

MUCH_OF_GAIN = 0.7
LESS_EACH = 10  # percentage points of the gain, by which fewer retrainings give more than their share
ALL_OF_GAIN = 95  # percent, from which fewer retrainings do the same


def over_time_title(view: View) -> str:
    """Return what happens to the model that is left alone, and what the compared policy reaches."""
    result, metric = view.result, view.metric
    if result.policies is None:
        return _log_title(view)
    never, new = result.policies[NEVER], compared_policy(result.policies, result.data.deployed)
    reaches = f"{view.done(new.policy)} it averages {_rounded(view, new.quality.value)}"
    subject = "the model" if metric.unit == "share" else f"the model's {metric.title}"
    worst = _clearly_worst(view, never, new)
    if worst is not None and new.gained.low > 0:
        at = view.names.within(view.names.names[worst - len(never.by_period)])
        verb = "falls to" if metric.higher_is_better else "rises to"
        return f"Left alone, {subject} {verb} {_rounded(view, never.by_period[worst].value)} {at}; {reaches}"
    alone = f"Left alone, {subject} averages {metric.text(never.quality.value)}"
    gives = f"{view.done(new.policy)}, {metric.text(new.quality.value)}"
    if new.gained.low > 0:
        return f"{alone}; {gives}"
    if new.gained.high < 0:
        return f"{alone}; {gives}, which is worse"
    return f"{alone}; {gives}: no certain difference"


def _rounded(view: View, value: float) -> str:
    return f"{100 * value:.0f}%" if view.factor == 100 else view.metric.text(value)


def _clearly_worst(view: View, never: PolicyResult, new: PolicyResult) -> int | None:
    """Return the period in which never retraining is worst, if its interval lies apart from the other policy's."""
    sign = 1 if view.metric.higher_is_better else -1
    values = np.array([sign * estimate.value for estimate in never.by_period])
    k = int(np.nanargmin(values))
    a, b = never.by_period[k], new.by_period[k]
    return k if ((a.high < b.low) if sign > 0 else (a.low > b.high)) else None


def _log_title(view: View) -> str:
    log, metric = view.result.log, view.metric
    assert log is not None
    first, last = metric.text(log.course.first), metric.text(log.course.last)
    if not log.changed:
        return f"The logged predictions keep to {metric.text(log.first_later.value)}: no trend or step is significant"
    verb = "fell" if log.course.change < 0 else "rose"
    return f"{metric.title[:1].upper()}{metric.title[1:]} of the logged predictions {verb} from {first} to {last}"


def policies_title(view: View) -> str:
    """Return what more retraining buys."""
    policies = view.result.policies
    assert policies is not None
    real = [r for r in policies.results if r.policy != TRIVIAL]
    sure = [r for r in real if r.gained.low > 0]
    if not sure:
        return "Nothing beats never retraining for certain"
    best = max(sure, key=lambda r: r.gained.value)
    gain = view.metric.difference(best.gained.value)
    if policies.recommendation.reason == "no-aging":
        return f"Retraining gains {gain} at best, and no aging was found"
    if best.policy == RECALIBRATE:
        return f"Recalibration gains {gain}; no retraining surely gains more"
    fewer = [
        r
        for r in real
        if 0 < r.retrainings < best.retrainings
        and r.gained.low > 0
        and r.gained.value >= MUCH_OF_GAIN * best.gained.value
    ]
    if best.retrainings == 1:
        return f"One retraining gains {gain}; no policy surely gains more"
    if not fewer:
        return typeset(f"Retraining gains {gain}, and fewer retrainings gain much less")
    least = min(fewer, key=lambda r: r.retrainings)
    share = 100 * least.gained.value / best.gained.value
    if share < 100 * least.retrainings / best.retrainings + LESS_EACH:
        return f"Retraining gains {gain}, and fewer retrainings gain less"
    if share >= ALL_OF_GAIN:
        times = "retraining gives" if least.retrainings == 1 else "retrainings give"
        return f"{least.retrainings} {times} {share:.0f}% of what {best.retrainings} give"
    give = "gives" if least.retrainings == 1 else "give"
    return f"Each retraining buys less: {least.retrainings} of {best.retrainings} {give} {share:.0f}% of the gain"


def policies_note(view: View) -> str:
    """Return how many policies were replayed, and how many answers."""
    policies = view.result.policies
    assert policies is not None
    never = policies[NEVER]
    return (
        f"{len(policies.results) - 1} policies replayed on the same {len(never.by_period)} {view.unit}, "
        f"{never.quality.n:,} answers"
    )


def source_line(view: View) -> str:
    """Return what the chart over time is made of."""
    result = view.result
    if result.policies is None:
        return f"{result.data.rows_used:,} logged predictions; band: 95% interval; dotted: the constant answer."
    assert result.matrix is not None
    n = result.policies[NEVER].quality.n or 0
    per = n // max(1, len(result.policies[NEVER].by_period))
    return (
        f"Replay of {n:,} answers, about {per:,} per {view.one}. Circles: a model trained in the {view.one} itself on "
        f"{result.matrix.training_rows:,} rows, tested on held-out rows."
    )
