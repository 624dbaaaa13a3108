"""The recommended policy: never one that may be much worse than the best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from driftline.auditing.estimate import Estimate
from driftline.auditing.metric import Metric
from driftline.auditing.policies import TRIVIAL, PolicyResult
from driftline.auditing.replay import ALL_HISTORY, NEVER, RECALIBRATE
from driftline.auditing.verdict import Verdict

Reason = Literal["no-aging", "recalibrate", "knee", "cheapest", "not-sure", "unknown"]


@dataclass(frozen=True)
class Costs:
    """What an error and a retraining cost, in any one currency."""

    error: float | None = None
    """Of a wrong answer; for numbers, of one unit of absolute error."""
    retraining: float | None = None

    @property
    def given(self) -> bool:
        return self.error is not None or self.retraining is not None


@dataclass(frozen=True)
class Recommendation:
    """The recommended policy and why."""

    policy: str
    best: str
    reason: Reason
    shortlist: tuple[str, ...]
    """Policies that are close enough to the best."""
    newer_rows: Estimate
    """What newer rows gain: retraining on a window against never."""
    more_rows: Estimate
    """What more rows gain: all history against the window."""
    knee: str
    """The policy with the fewest retrainings among those close to the best."""


@dataclass(frozen=True)
class Policies:
    """All policies, the best first and the trivial baseline last."""

    results: tuple[PolicyResult, ...]
    recommendation: Recommendation
    costs: Costs

    def __getitem__(self, policy: str) -> PolicyResult:
        return next(result for result in self.results if result.policy == policy)

    def __contains__(self, policy: str) -> bool:
        return any(result.policy == policy for result in self.results)

    @property
    def recommended(self) -> PolicyResult:
        return self[self.recommendation.policy]

    @property
    def best(self) -> PolicyResult:
        return self[self.recommendation.best]

    @property
    def gains_by_more_rows(self) -> bool:
        """Whether retraining on all history surely gains, and does so because it has more rows."""
        return self.recommendation.more_rows.low > 0 and self[ALL_HISTORY].gained.low > 0


def recommend(
    results: Sequence[PolicyResult],
    verdict: Verdict,
    metric: Metric,
    costs: Costs,
    parts: tuple[Estimate, Estimate],
    last_is_odd: bool,
) -> Policies:
    """Return the policies with their costs and frontier, and the recommended one.

    Without aging nothing is retrained by the calendar. If costs are given, the cheapest policy is chosen. Otherwise a
    miscalibrated model is recalibrated if that surely gains and no retraining is surely better; else, with a sure
    gain, the policy with the fewest retrainings among those close to the best is chosen.
    """
    results = _with_frontier([_with_cost(result, costs) for result in results], metric.higher_is_better)
    real = [result for result in results if result.policy != TRIVIAL]
    best, by_name = real[0], {result.policy: result for result in real}
    never = by_name[NEVER]
    close = [result for result in real if result is best or is_close(result, never.behind.value, metric, never)]
    knee = min(close, key=lambda result: (result.retrainings, result.behind.value, result.rows))
    chosen, reason = _choose(real, verdict, costs, knee, last_is_odd)
    recommendation = Recommendation(
        chosen, best.policy, reason, tuple(result.policy for result in close), parts[0], parts[1], knee.policy
    )
    return Policies(tuple(results), recommendation, costs)


def is_close(result: PolicyResult, total_gain: float, metric: Metric, never: PolicyResult) -> bool:
    """Return whether a policy is behind the best by little, also at both ends of its interval.

    By at most half a point or a tenth of what the best gains over never retraining; at the upper end by at most one
    point or a quarter; and never surely by more than half a point. For errors in the target's units, a point is one
    percent of the error of never retraining.
    """
    point = metric.point(never.quality.value)
    gain = max(total_gain, 0.0)
    behind = result.behind
    return (
        behind.low <= 0.5 * point
        and behind.value <= max(0.5 * point, gain / 10)
        and behind.high <= max(point, gain / 4)
    )


def _choose(
    real: Sequence[PolicyResult], verdict: Verdict, costs: Costs, knee: PolicyResult, last_is_odd: bool
) -> tuple[str, Reason]:
    by_name = {result.policy: result for result in real}
    if not verdict.has_skill:
        return NEVER, "unknown"
    if not (verdict.aged or verdict.miscalibrated or last_is_odd):
        return NEVER, "no-aging"
    if costs.given:
        return min(real, key=lambda result: (result.cost, result.retrainings)).policy, "cheapest"
    repaired = by_name.get(RECALIBRATE)
    if verdict.miscalibrated and repaired and repaired.gained.low > 0 and repaired.behind.low <= 0:
        return RECALIBRATE, "recalibrate"
    if real[0].gained.low <= 0:
        return NEVER, "not-sure"
    return knee.policy, "knee"


def _with_cost(result: PolicyResult, costs: Costs) -> PolicyResult:
    if not costs.given:
        return result
    per_answer = (costs.error or 0.0) * result.error
    per_answer += (costs.retraining or 0.0) * result.retrainings / max(result.quality.n or 1, 1)
    return replace(result, cost=1000 * per_answer)


def _with_frontier(results: Sequence[PolicyResult], higher_is_better: bool) -> list[PolicyResult]:
    sign = 1 if higher_is_better else -1
    real = [result for result in results if result.policy != TRIVIAL]

    def dominated(result: PolicyResult) -> bool:
        mine = (result.retrainings, -sign * result.quality.value)
        return any(
            (o.retrainings, -sign * o.quality.value) != mine
            and o.retrainings <= mine[0]
            and -sign * o.quality.value <= mine[1]
            for o in real
        )

    return [replace(r, on_frontier=r.policy != TRIVIAL and not dominated(r)) for r in results]
