"""Settings that compete: which of them won, and what the choice took."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from driftline.engine.rounds import Standing
from driftline.jobs import Contest, Job
from driftline.store import Store

MEANING = {
    "validation-streams": "the best on validation streams",
    "oracle": "ORACLE: the best on the test streams themselves, which no user could do",
}


@dataclass(frozen=True)
class Verdict:
    """Which settings won a contest, and what each scored."""

    contest: Contest
    standing: Standing
    won: int
    """The number of the settings that won."""

    @property
    def tried(self) -> list[dict[str, Any]]:
        """Each setting with the mean over its trials, how many these were, and, if it dropped out, why."""
        return [
            {
                **point,
                "score": self.standing.score(k),
                "trials": len(self.standing.scores[k]),
                **({"out": self.standing.out[k]} if self.standing.out[k] else {}),
            }
            for k, point in enumerate(self.contest.points)
        ]

    @property
    def chosen(self) -> dict[str, Any]:
        """The settings that won, with their score if they had to compete for it."""
        score = self.standing.score(self.won)
        return {**self.contest.points[self.won], **({} if score is None else {"score": score})}

    @property
    def spared(self) -> int:
        """Trials that were not needed because the winner was settled without them."""
        return len(self.contest.points) * len(self.contest.seeds) - self.standing.trials

    def said(self) -> str:
        """How the choice was made, in a line."""
        runs = f"{len(self.contest.points)} settings, {self.standing.trials} runs"
        spared = f", {self.spared} more spared: the winner was settled without them" if self.spared else ""
        return f"{rule_said(self.contest.rule, self.contest.metrics)}, {runs}{spared}"


def rule_said(rule: str, metrics: Iterable[tuple[str, str]]) -> str:
    """A rule and what it goes by."""
    by = " and ".join(f"{metric} ({stat})" for metric, stat in metrics)
    return f"{rule}: {MEANING[rule]} by {by if by.count('(') < 2 else f'the mean of {by}'}"


def settle(job: Job, needs: Sequence[str], store: Store) -> tuple[Job, Verdict | None]:
    """The job with the settings that won its contest; as it is if it has none.

    The last of its `needs` is the round that decided. A setting that is alone wins without one.
    """
    if job.contest is None:
        return job, None
    alone = len(job.contest.points) < 2
    standing = Standing.before(job.contest) if alone else Standing.read(store.stage_path(needs[-1]))
    won = standing.winner
    assert won is not None  # a round without one fails
    return job.with_settings(job.contest.points[won]), Verdict(job.contest, standing, won)
