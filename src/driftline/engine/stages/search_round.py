"""Rounds of a hyper-parameter search: after each, candidates that can no longer win are eliminated.

A round is a small stage between search runs, so that all executors, and a sweep that was interrupted, decide the same.
It reads the scores of its runs and writes the state of the search. Nothing else decides: a run that happens to be in
the store although its candidate was eliminated does not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import ClassVar, TypeVar

import numpy as np

from driftline import registry
from driftline.engine.stages.base import Stage, StageContext, Workload
from driftline.engine.stages.search_choice import describe_choice, select
from driftline.errors import UserError
from driftline.io import serialization
from driftline.record.run import Run
from driftline.spec.job import Job, SearchSpace
from driftline.spec.settings import format_settings
from driftline.store.store import Store
from driftline.types import JsonObject

T = TypeVar("T")

SLACK = 1e-9  # sums of scores are rounded: a candidate this close to the bound stays
DOMINATED = "could no longer win"
NO_MEMORY = ("out of memory", "OutOfMemoryError")  # how the reason begins; the second is torch's on GPUs
RAISED = "Traceback"  # how the report of a failure begins if the method itself raised it
RULES = {
    "validation-streams": "the best on {validation}",
    "oracle": "ORACLE: the best on the test streams themselves, which no user could do",
}


@dataclass(frozen=True)
class SearchRound(Stage):
    """Score the runs of a round and eliminate candidates."""

    number: int
    previous: str | None
    """The key of the round before."""
    runs: tuple[tuple[str, ...], ...]
    """Keys of the runs of each candidate in this round."""

    kind: ClassVar[str] = "search-round"

    @property
    def title(self) -> str:
        return f"{self.job.label}: search round {self.number}"

    @property
    def needs(self) -> tuple[str, ...]:
        return (*(() if self.previous is None else (self.previous,)), *self.optional_needs)

    @property
    def optional_needs(self) -> tuple[str, ...]:
        return tuple(key for keys in self.runs for key in keys)

    def current_key(self, fingerprint: str) -> str:
        return self.key  # it reads nothing but results

    def is_local(self, store: Store) -> bool:
        return True

    def cost_key(self, workload: Workload) -> None:
        return None

    def cost_title(self, workload: Workload) -> str:
        return "search"

    def _check_inputs_unchanged(self, context: StageContext) -> None:
        """Read no data: a round depends on results alone."""

    def compute(self, context: StageContext) -> None:
        store, search = context.store, self.job.search
        assert search is not None
        search_state = SearchState.read(store.stage_path(self.previous)) if self.previous else SearchState.new(search)
        for k in search_state.competing:
            search_state = _with_runs(search_state, k, self.runs[k], search, store)
        search_state = eliminate_dominated(search_state, search)
        if search_state.winner is None:
            pairs = zip(search.candidates, search_state.eliminated, strict=True)
            reasons = "; ".join(f"{format_settings(candidate)}: {why}" for candidate, why in pairs)
            raise UserError(f"no setting of {self.job.label} has a score: {reasons}")
        required = [search.candidates[k] for k in search_state.competing]
        serialization.save({**asdict(search_state), "required": required}, store.stage_path(self.key))


@dataclass(frozen=True)
class SearchState:
    """Scores and eliminations after a round, by candidate."""

    scores: tuple[tuple[float, ...], ...]
    """Scores of each candidate's runs so far."""
    eliminated: tuple[str, ...]
    """Why a candidate was eliminated; empty while it competes."""
    runs: int = 0
    """Number of runs that were required."""
    macs: int | None = 0
    """Their MACs; None if they were not counted."""

    @classmethod
    def new(cls, search: SearchSpace) -> SearchState:
        """Return the state before the first round."""
        return cls(tuple(() for _ in search.candidates), tuple("" for _ in search.candidates))

    @classmethod
    def read(cls, path: Path) -> SearchState:
        """Read the result of a round."""
        saved = serialization.load(path)
        return cls(tuple(map(tuple, saved["scores"])), tuple(saved["eliminated"]), saved["runs"], saved["macs"])

    @property
    def competing(self) -> list[int]:
        """Indices of the candidates that may still win; a single one has won and needs no further run."""
        left = [k for k, why in enumerate(self.eliminated) if not why]
        return left if len(left) > 1 else []

    @property
    def winner(self) -> int | None:
        """The index of the best remaining candidate, the first of equals; None if no candidate has a score.

        If all remaining candidates failed in a later round, the best of the dominated ones wins.
        """
        best = "" if "" in self.eliminated else DOMINATED
        left = [k for k, why in enumerate(self.eliminated) if why == best]
        ranked = [(len(self.scores[k]), self.score(k) or 0.0, -k) for k in left]
        return -max(ranked)[-1] if ranked else None

    def score(self, k: int) -> float | None:
        """Return the mean score of a candidate's runs so far."""
        return float(np.mean(self.scores[k])) if self.scores[k] else None


@dataclass(frozen=True)
class SearchResult:
    """The selected settings, and the scores of all candidates."""

    space: SearchSpace
    state: SearchState
    winner: int
    """The index of the selected candidate."""

    @property
    def candidates(self) -> list[JsonObject]:
        """Each candidate with its mean score, the number of its runs and, if it was eliminated, why."""
        return [
            {
                **candidate,
                "score": self.state.score(k),
                "trials": len(self.state.scores[k]),
                **({"out": self.state.eliminated[k]} if self.state.eliminated[k] else {}),
            }
            for k, candidate in enumerate(self.space.candidates)
        ]

    @property
    def selected(self) -> JsonObject:
        """The selected settings, with their score if there were others."""
        score = self.state.score(self.winner)
        return {**self.space.candidates[self.winner], **({} if score is None else {"score": score})}

    @property
    def skipped(self) -> int:
        """Number of runs that were not needed to find the winner."""
        return len(self.space.candidates) * len(self.space.seeds) - self.state.runs

    def describe(self, validation: str) -> str:
        """Return one line about how the settings were selected; `validation`: the data to select on."""
        runs = f"{len(self.space.candidates)} settings, {self.state.runs} runs"
        skipped = f", {self.skipped} more skipped: the winner was certain without them" if self.skipped else ""
        return f"{describe_rule(self.space.rule, self.space.metrics, validation)}, {runs}{skipped}"

    @property
    def choice(self) -> JsonObject:
        """The runner-up, the margin and whether it is within noise; empty without another candidate."""
        return describe_choice(self.state, self.space, self.winner)


def describe_rule(rule: str, metrics: Iterable[tuple[str, str]], validation: str) -> str:
    """Return a selection rule and its metrics as text; `validation`: the data of a benchmark to select on."""
    by = " and ".join(f"{metric} ({stat})" for metric, stat in metrics)
    best = RULES[rule].format(validation=validation)
    return f"{rule}: {best} by {by if by.count('(') < 2 else f'the mean of {by}'}"


def resolve_settings(job: Job, last_round: str | None, store: Store) -> tuple[Job, SearchResult | None]:
    """Return the job with the settings that its search selected; a single candidate wins without a round."""
    if job.search is None:
        return job, None
    search_state = SearchState.read(store.stage_path(last_round)) if last_round else SearchState.new(job.search)
    winner = select(search_state, job.search)
    assert winner is not None  # a round without one fails
    return job.with_settings(job.search.candidates[winner]), SearchResult(job.search, search_state, winner)


def required_candidates(rounds: Iterable[str], store: Store) -> Iterator[JsonObject]:
    """Yield the candidates that still compete after these rounds."""
    for key in rounds:
        if serialization.is_complete(path := store.stage_path(key)):
            yield from serialization.load_metadata(path)["required"]


def seeds_by_round(search: SearchSpace) -> list[tuple[int, ...]]:
    """Return the seeds of each round.

    Bounded scores decide nothing before more than half of the runs are done, however far a candidate leads. These are
    one round, then each seed is one. Without known bounds, all seeds are one round.
    """
    first = len(search.seeds) // 2 + 1
    if bounds(search) is None:
        return [search.seeds]
    return [search.seeds[:first], *((seed,) for seed in search.seeds[first:])]


def bounds(search: SearchSpace) -> tuple[float, float] | None:
    """Return the range of any run's score; None if it is not known for all metrics or has no end."""
    known = [registry.get("metric", metric).bounds for metric, _ in search.metrics]
    if any(ends is None or not np.isfinite(ends).all() for ends in known):
        return None
    return min(low for low, _ in known), max(high for _, high in known)


def eliminate_dominated(search_state: SearchState, search: SearchSpace) -> SearchState:
    """Eliminate every candidate that loses even if its other runs score highest and the leader's lowest."""
    known, n = bounds(search), len(search.seeds)
    if known is None or not search_state.competing:
        return search_state

    def final_score(k: int, others: float) -> float:
        scores = search_state.scores[k]
        return (sum(scores) + (n - len(scores)) * others) / n

    low, high = known
    certain = max(final_score(k, low) for k in search_state.competing)
    unfinished = [k for k in search_state.competing if len(search_state.scores[k]) < n]
    dominated = {k for k in unfinished if final_score(k, high) < certain - SLACK}
    reasons = tuple(DOMINATED if k in dominated else why for k, why in enumerate(search_state.eliminated))
    return replace(search_state, eliminated=reasons)


def _with_runs(
    search_state: SearchState, k: int, keys: Sequence[str], search: SearchSpace, store: Store
) -> SearchState:
    """Add the runs of one candidate; it is eliminated if one of them failed or has no score."""
    runs, why = [], ""
    for key in keys:
        if store.finished(key):
            runs.append(Run(store.run_folder(key)))
        else:
            why = f"failed: {_own_failure(key, search.candidates[k], store)}"
    scores = [score(run, search.metrics) for run in runs]
    if not np.isfinite(scores).all():
        why = why or "a run has no score"
    costs = [run.card.compute.macs for run in runs]
    finite = [value for value in scores if np.isfinite(value)]
    return replace(
        search_state,
        scores=_replaced(search_state.scores, k, (*search_state.scores[k], *finite)),
        eliminated=_replaced(search_state.eliminated, k, why),
        runs=search_state.runs + len(keys),
        macs=_sum_or_none([search_state.macs, *costs]),
    )


def _sum_or_none(counts: list[int | None]) -> int | None:
    """Return the sum; None if one of them was not counted."""
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _replaced(values: tuple[T, ...], k: int, value: T) -> tuple[T, ...]:
    return (*values[:k], value, *values[k + 1 :])


def _own_failure(key: str, candidate: JsonObject, store: Store) -> str:
    """Return why a run failed; a failure that is not the method's own, such as a killed worker, decides nothing."""
    failure = store.failure(key)
    raised = failure is not None and failure["traceback"].startswith(RAISED)
    if failure is None or not raised or failure["reason"].startswith(NO_MEMORY):
        reason = failure["reason"] if failure else "it is not in the store"
        raise UserError(
            f"the hyper-parameter search is incomplete: the run with {format_settings(candidate)} was interrupted "
            f"({reason}). Run the same command again to resume."
        )
    return str(failure["reason"])


def score(run: Run, metrics: Iterable[tuple[str, str]]) -> float:
    """Return the mean of a run's scores; a metric that is not defined for the run does not count."""
    scores = run.table("scores")
    rows = [scores.loc[(scores["metric"] == m) & (scores["stat"] == s), "value"] for m, s in metrics]
    values = [float(value.iloc[0]) for value in rows if len(value) and np.isfinite(value.iloc[0])]
    return float(np.mean(values)) if values else float("nan")
