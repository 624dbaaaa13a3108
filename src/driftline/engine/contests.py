"""Settings that compete: the trials a run needs, and which of them won."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from driftline.errors import UserError
from driftline.jobs import Job, told
from driftline.record import Run
from driftline.store import Store

MEANING = {
    "validation-streams": "the best on validation streams",
    "oracle": "ORACLE: the best on the test streams themselves, which no user could do",
}


@dataclass(frozen=True)
class Verdict:
    """Which settings won a contest, and what each scored."""

    rule: str
    chosen: dict[str, Any]
    tried: list[dict[str, Any]]
    """Each setting with its score, the mean over its trials."""
    trials: int
    macs: int | None
    """What all trials cost; None where it was not counted."""

    def said(self, metrics: tuple[tuple[str, str], ...]) -> str:
        by = " and ".join(f"{metric} ({stat})" for metric, stat in metrics)
        each = self.trials // len(self.tried)
        return f"{self.rule}: {MEANING[self.rule]} by the mean of {by}, {len(self.tried)} settings x {each} runs"


def settle(job: Job, fingerprint: str, store: Store) -> tuple[Job, Verdict | None]:
    """The job with the settings that won its contest; as it is if it has none."""
    if job.contest is None:
        return job, None
    runs = [[Run(store.run_folder(trial.key(fingerprint))) for trial in trials] for trials in job.trials()]
    scores = [float(np.mean([_score(run, job.contest.metrics) for run in of_point])) for of_point in runs]
    if not np.isfinite(scores).any():
        raise UserError(f"no setting of {job.label} has a score: {'; '.join(map(told, job.contest.points))}")
    best = int(np.nanargmax(scores))  # the earlier one wins a tie
    chosen = job.contest.points[best]
    tried = [{**point, "score": score} for point, score in zip(job.contest.points, scores, strict=True)]
    costs = [run.card["compute"] for of_point in runs for run in of_point]
    counted = all(cost["forward_macs"] is not None for cost in costs)
    macs = sum(cost["forward_macs"] + cost["backward_macs"] for cost in costs) if counted else None
    return job.with_settings(chosen), Verdict(job.contest.rule, chosen, tried, len(costs), macs)


def _score(run: Run, metrics: tuple[tuple[str, str], ...]) -> float:
    """The mean of a trial's scores; a metric that is nowhere defined, as EFR without errors, does not count."""
    scores = run.table("scores")
    found = [scores.loc[(scores["metric"] == m) & (scores["stat"] == s), "value"] for m, s in metrics]
    values = [float(value.iloc[0]) for value in found if len(value) and np.isfinite(value.iloc[0])]
    return float(np.mean(values)) if values else float("nan")
