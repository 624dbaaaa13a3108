"""Replay of retraining policies: what each would have scored and cost on this table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np

from driftline import loop
from driftline.auditing.baseline import constant_answers
from driftline.auditing.estimate import DRAWS, Estimate
from driftline.auditing.table import AuditTable
from driftline.benchmarks.base import NoProbes
from driftline.errors import UserError
from driftline.learners.retraining.base import PolicyLog, RetrainingPolicy
from driftline.learners.retraining.online_tas import RetrainOnTAS
from driftline.learners.retraining.schedules import RetrainEveryK, RetrainOnAll, RetrainOnWindow, TrainOnce
from driftline.metrics.block_bootstrap import block_indices
from driftline.metrics.confidence import bootstrap_means, percentile_interval
from driftline.record.recorder import MemoryRecorder
from driftline.reveal import RevealPolicy
from driftline.types import Reveal

BLOCK = 10  # chunks of rows per period, and thus per block of the bootstrap: a block is one period long
TOLERANCE = 0.005  # half a point is not worth a training
NEVER, TRIVIAL = "never", "trivial"  # train once; no model, a constant answer
DETECTORS = ("adwin", "page-hinkley", "kswin", "ddm")  # of river


@dataclass(frozen=True, eq=False)
class Replay:
    """The answers by period under one policy, and what it did."""

    answers: list[np.ndarray]
    log: PolicyLog


@dataclass(frozen=True)
class PolicyResult:
    """Quality and cost of one policy."""

    policy: str
    quality: Estimate
    behind: Estimate
    """Quality of the best policy minus that of this one, paired."""
    gained: Estimate
    """Quality minus that of never retraining, paired."""
    above_trivial: Estimate
    """Quality minus that of the trivial baseline, paired."""
    retrainings: int
    """Trainings after the first."""
    retrained_after: tuple[str, ...]
    rows: int
    """Rows trained on, in all trainings."""
    seconds: float
    mae: float | None
    """Mean absolute error; None for classes."""
    online_tas: tuple[float, ...]
    """The online TAS and TTR by which the policy decided; empty for other policies."""
    online_ttr: tuple[float, ...]
    by_period: tuple[Estimate, ...]
    """Quality in each period with a deployed model."""


@dataclass(frozen=True)
class Recommendation:
    """The recommended policy and the rule that chose it."""

    policy: str
    best: str
    shortlist: tuple[str, ...]
    """Policies that are not certainly worse than the best."""
    tolerance: float
    rule: str


@dataclass(frozen=True)
class Policies:
    """All policies, the best first and the trivial baseline last."""

    results: tuple[PolicyResult, ...]
    recommendation: Recommendation

    def __getitem__(self, policy: str) -> PolicyResult:
        return next(result for result in self.results if result.policy == policy)

    @property
    def recommended(self) -> PolicyResult:
        return self[self.recommendation.policy]

    @property
    def best(self) -> PolicyResult:
        return self[self.recommendation.best]


def policies(periods: int) -> dict[str, RetrainingPolicy]:
    """Return the policies to compare, by name."""
    k, w = (4, 3) if periods >= 9 else (2, 2)
    by_name: dict[str, RetrainingPolicy] = {
        "all-history": RetrainOnAll(),
        f"window-{w}": RetrainOnWindow(window=w),
        "on-online-tas": RetrainOnTAS(window=w),
        f"every-{k}": RetrainEveryK(k=k),
        NEVER: TrainOnce(),
    }
    if find_spec("river") is not None:
        from driftline.learners.retraining.drift_detector import RetrainOnDrift

        for name in DETECTORS:
            max_errors_fed = 200 if name == "kswin" else 500  # KSWIN takes a millisecond per signal
            by_name[f"on-{name}"] = RetrainOnDrift(detector=name, window=w, max_errors_fed=max_errors_fed)  # type: ignore[arg-type]
    return by_name


def replay(table: AuditTable, policy: RetrainingPolicy) -> Replay:
    """Run a policy through all periods."""
    task = table.frame.task
    policy.max_samples, policy.seed = table.limits.training_rows, table.seed.child("learner")
    policy.prepare(table.new_model(), task)
    recorder = MemoryRecorder(task)
    reveal = RevealPolicy(task, Reveal.LABELS, table.seed, table.delay)
    loop.run(table.stream, policy, reveal, NoProbes(), recorder)
    return Replay(recorder.answers, policy.log())


def compare_policies(table: AuditTable, replays: Mapping[str, Replay]) -> tuple[PolicyResult, ...]:
    """Return quality and cost of each policy, the best first, and of the trivial baseline, which comes last."""
    replays = {**replays, TRIVIAL: Replay(constant_answers(table), PolicyLog((0,), 0, 0.0))}
    scores = {name: _scores_by_period(table, done.answers) for name, done in replays.items()}
    quality, draws, n = _resample(table, scores)
    order = sorted(quality, key=lambda name: (name == TRIVIAL, -quality[name], replays[name].log.n_train_rows, name))
    curves = _curves(table, scores)

    def difference(a: str, b: str) -> Estimate:
        return Estimate.from_draws(quality[a] - quality[b], draws[a] - draws[b])

    return tuple(
        PolicyResult(
            policy=name,
            quality=Estimate.from_draws(quality[name], draws[name], n, "answers"),
            behind=difference(order[0], name),
            gained=difference(name, NEVER),
            above_trivial=difference(name, TRIVIAL),
            retrainings=len(replays[name].log.retrained_at) - 1,
            retrained_after=tuple(table.names[table.deliveries[k]] for k in replays[name].log.retrained_at),
            rows=replays[name].log.n_train_rows,
            seconds=round(replays[name].log.seconds, 3),
            mae=None if table.is_classification else _mean_absolute_error(table, replays[name].answers),
            online_tas=replays[name].log.online_tas,
            online_ttr=replays[name].log.online_ttr,
            by_period=curves[name],
        )
        for name in order
    )


def _scores_by_period(table: AuditTable, answers: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return the score of each answer: right or wrong, or for numbers what averages to R^2."""
    scores = []
    for k in range(table.first_deployed, len(table.periods)):
        y = table.rows(k).y
        if table.is_classification:
            scores.append(table.frame.task.correct(answers[k], y))
        else:
            variance = float(np.var(y))
            scores.append(1 - (answers[k] - y) ** 2 / variance if variance else np.full(len(y), np.nan))
    return scores


def _resample(
    table: AuditTable, scores: Mapping[str, Sequence[np.ndarray]]
) -> tuple[dict[str, float], dict[str, np.ndarray], int]:
    """Return the quality of each policy, bootstrap draws of it over blocks of time, and the number of answers."""
    chunks = {name: _chunks(parts) for name, parts in scores.items()}
    counts = chunks[TRIVIAL][1]
    if not counts.any():
        raise UserError("the target is constant within each period in which a model is deployed: there is no R²")
    at = block_indices(len(counts), BLOCK, DRAWS, table.seed.child("blocks").numpy())
    n = counts[at].sum(axis=1)
    quality = {name: float(sums.sum() / counts.sum()) for name, (sums, _) in chunks.items()}
    draws = {name: sums[at].sum(axis=1) / np.where(n, n, np.nan) for name, (sums, _) in chunks.items()}
    return quality, draws, int(counts.sum())


def _chunks(parts: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return sums and counts over chunks of consecutive rows, up to ten per period."""
    chunks = [chunk for part in parts for chunk in np.array_split(part, min(BLOCK, len(part)))]
    return np.array([np.nansum(chunk) for chunk in chunks]), np.array([np.isfinite(chunk).sum() for chunk in chunks])


def _curves(table: AuditTable, scores: Mapping[str, Sequence[np.ndarray]]) -> dict[str, tuple[Estimate, ...]]:
    """Return the quality of each policy by period. All policies share the draws of rows."""
    random = table.seed.child("course").numpy()
    periods = [np.stack(parts, axis=1) for parts in zip(*scores.values(), strict=True)]
    ends = [percentile_interval(bootstrap_means(part, DRAWS, random)) for part in periods]
    return {
        name: tuple(
            Estimate(float(part.mean()), float(low[k]), float(high[k]), len(part), "answers")
            for part, (low, high) in zip(scores[name], ends, strict=True)
        )
        for k, name in enumerate(scores)
    }


def _mean_absolute_error(table: AuditTable, answers: Sequence[np.ndarray]) -> float:
    used = range(table.first_deployed, len(table.periods))
    return float(np.mean(np.concatenate([np.abs(answers[k] - table.rows(k).y) for k in used])))


def recommend_policy(results: Sequence[PolicyResult], tolerance: float = TOLERANCE) -> Recommendation:
    """Return the policy that trains on the fewest rows, among those not certainly worse than the best.

    Candidates are the best and every policy whose 95 % interval of the loss to the best reaches down to `tolerance`.
    Ties go to fewer retrainings, then to the name. The trivial baseline is no candidate.
    """
    results = [result for result in results if result.policy != TRIVIAL]
    candidates = [result for result in results if result is results[0] or result.behind.low <= tolerance]
    chosen = min(candidates, key=lambda result: (result.rows, result.retrainings, result.policy))
    return Recommendation(
        policy=chosen.policy,
        best=results[0].policy,
        shortlist=tuple(result.policy for result in candidates),
        tolerance=tolerance,
        rule="fewest rows trained on, among the policies whose loss to the best (paired 95% block-bootstrap interval) "
        f"is not certainly above {100 * tolerance:g} points",
    )
