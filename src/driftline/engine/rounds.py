"""Rounds of a contest: after each, settings that can no longer win drop out, and what they had still to run is spared.

A round is a small stage between trials, so that all engines, and a sweep that was killed, decide the same. It reads
what the trials came to and writes how the contest stands. Nothing else decides: a trial that happens to be in the store
although its setting dropped out does not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from driftline import registry, state
from driftline.errors import UserError
from driftline.jobs import Contest, told
from driftline.record import Run
from driftline.store import Store

if TYPE_CHECKING:
    from driftline.engine.stages import Stage

SLACK = 1e-9  # sums of scores are rounded: a setting so close to the bound stays in
BEATEN = "could no longer win"
NO_MEMORY = ("out of memory", "OutOfMemoryError")  # how the reason begins if that was it; the second is torch's on GPUs
RAISED = "Traceback"  # how the report of a failure begins if the method itself raised it


@dataclass(frozen=True)
class Standing:
    """How a contest stands, setting by setting."""

    scores: tuple[tuple[float, ...], ...]
    """What each setting's trials scored so far."""
    out: tuple[str, ...]
    """Why a setting dropped out; empty while it competes."""
    trials: int = 0
    """How many were called for."""
    macs: int | None = 0
    """What they cost; None where it was not counted."""

    @classmethod
    def before(cls, contest: Contest) -> Standing:
        """Nothing has been tried."""
        return cls(tuple(() for _ in contest.points), tuple("" for _ in contest.points))

    @classmethod
    def read(cls, path: Path) -> Standing:
        """As a round left it."""
        content = state.load(path)
        scores, out = tuple(map(tuple, content["scores"])), tuple(content["out"])
        return cls(scores, out, content["trials"], content["macs"])

    @property
    def competing(self) -> list[int]:
        """The settings that may still win, by number; one that is alone has won and needs no further trial."""
        left = [k for k, why in enumerate(self.out) if not why]
        return left if len(left) > 1 else []

    @property
    def winner(self) -> int | None:
        """The best of those that are left; the earlier one wins a tie. None if no setting has a score.

        If all that were left failed in a later round, the best of those that had dropped out for them stands.
        """
        best = "" if "" in self.out else BEATEN
        left = [k for k, why in enumerate(self.out) if why == best]
        ranked = [(len(self.scores[k]), self.score(k) or 0.0, -k) for k in left]
        return -max(ranked)[-1] if ranked else None

    def score(self, k: int) -> float | None:
        """The mean over a setting's trials so far."""
        return float(np.mean(self.scores[k])) if self.scores[k] else None


def seeds_by_round(contest: Contest) -> list[tuple[int, ...]]:
    """The seeds of each round.

    Scores within known bounds settle nothing before more than half of the trials are in: however far ahead a setting
    is, the others could catch up. These are one round, then each seed is one. Where no bounds are known, all seeds are.
    """
    first = len(contest.seeds) // 2 + 1
    if bounds(contest) is None:
        return [contest.seeds]
    return [contest.seeds[:first], *((seed,) for seed in contest.seeds[first:])]


def bounds(contest: Contest) -> tuple[float, float] | None:
    """Between what any trial must score; None if that is not known for all metrics."""
    known = [registry.get("metric", metric).within for metric, _ in contest.metrics]
    return None if None in known else (min(low for low, _ in known), max(high for _, high in known))


def called_for(stage: Stage, store: Store) -> bool:
    """Whether a stage is to be computed: a trial of a later round only if its setting is still in a contest."""
    if stage.kind != "trial" or not stage.despite:
        return True
    settings = stage.job["method"]["settings"]
    paths = [path for key in stage.despite if state.readable(path := store.stage_path(key))]
    points = (point for path in paths for point in state.glance(path)["calls"])
    return any(point.items() <= settings.items() for point in points)


def judge(stage: Stage, store: Store) -> None:
    """Add what a round's trials came to, and write who is left."""
    contest = Contest.model_validate(stage.job["contest"])
    earlier = [key for key in stage.needs if key not in stage.despite]
    standing = Standing.read(store.stage_path(earlier[0])) if earlier else Standing.before(contest)
    each = len(stage.despite) // len(contest.points)
    for k in standing.competing:
        standing = _counted(standing, k, stage.despite[k * each : (k + 1) * each], contest, store)
    standing = without_beaten(standing, contest)
    if standing.winner is None:
        reasons = "; ".join(f"{told(p)}: {why}" for p, why in zip(contest.points, standing.out, strict=True))
        raise UserError(f"no setting of {stage.job['label']} has a score: {reasons}")
    calls = [contest.points[k] for k in standing.competing]
    state.save({**asdict(standing), "calls": calls}, store.stage_path(stage.key))


def without_beaten(standing: Standing, contest: Contest) -> Standing:
    """Drop every setting that loses even if its other trials score as high as can be, and the leader's as low."""
    known, n = bounds(contest), len(contest.seeds)
    if known is None or not standing.competing:
        return standing

    def at_the_end(k: int, others: float) -> float:
        scores = standing.scores[k]
        return (sum(scores) + (n - len(scores)) * others) / n

    low, high = known
    sure = max(at_the_end(k, low) for k in standing.competing)
    unfinished = [k for k in standing.competing if len(standing.scores[k]) < n]
    beaten = {k for k in unfinished if at_the_end(k, high) < sure - SLACK}
    return replace(standing, out=tuple(BEATEN if k in beaten else why for k, why in enumerate(standing.out)))


def _counted(standing: Standing, k: int, keys: Sequence[str], contest: Contest, store: Store) -> Standing:
    """With the trials of one setting; it drops out if one of them failed, or has no score."""
    runs, why = [], ""
    for key in keys:
        if store.finished(key):
            runs.append(Run(store.run_folder(key)))
        else:
            why = f"failed: {_own_fault(key, contest.points[k], store)}"
    scores = [score(run, contest.metrics) for run in runs]
    if not np.isfinite(scores).all():
        why = why or "a trial has no score"
    costs = [run.card["compute"] for run in runs]
    counted = standing.macs is not None and all(cost["forward_macs"] is not None for cost in costs)
    spent = sum(cost["forward_macs"] + cost["backward_macs"] for cost in costs) if counted else 0
    return replace(
        standing,
        scores=_with(standing.scores, k, (*standing.scores[k], *(one for one in scores if np.isfinite(one)))),
        out=_with(standing.out, k, why),
        trials=standing.trials + len(keys),
        macs=standing.macs + spent if counted and standing.macs is not None else None,
    )


def _with(values: tuple[Any, ...], k: int, value: Any) -> tuple[Any, ...]:
    return (*values[:k], value, *values[k + 1 :])


def _own_fault(key: str, point: dict[str, Any], store: Store) -> str:
    """Why a trial failed. What was not its own fault, as a worker that was killed, decides nothing: it is run again."""
    failure = store.failure(key)
    raised = failure is not None and failure["traceback"].startswith(RAISED)
    if failure is None or not raised or failure["reason"].startswith(NO_MEMORY):
        reason = failure["reason"] if failure else "it is not in the store"
        raise UserError(f"nothing is chosen yet, because the trial with {told(point)} was lost: {reason}")
    return str(failure["reason"])


def score(run: Run, metrics: Iterable[tuple[str, str]]) -> float:
    """The mean of a trial's scores; a metric that is nowhere defined, as EFR without errors, does not count."""
    scores = run.table("scores")
    found = [scores.loc[(scores["metric"] == m) & (scores["stat"] == s), "value"] for m, s in metrics]
    values = [float(value.iloc[0]) for value in found if len(value) and np.isfinite(value.iloc[0])]
    return float(np.mean(values)) if values else float("nan")
