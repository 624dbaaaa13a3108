"""Search budget: the same number of trials for every method, whatever its number of phases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from driftline.errors import UserError
from driftline.learners.fit_plan import FitSpec, SearchPhase, Winner

T = TypeVar("T")


def limit_to_budget(last: SearchPhase, total: int, name: str) -> SearchPhase:
    """Return a plan with `total` trials that train, or fewer if it has no more, shared evenly between its phases.

    A trial left over goes to a later phase. Each phase keeps evenly spaced trials.
    """
    order = list(_phases(last))
    shares = _trials_per_phase({phase.key: len(phase.trials) for phase in order if phase.trials[0].trains}, total, name)
    made: dict[str, SearchPhase] = {}
    for phase in order:
        trials = [_rebased(trial, made) for trial in phase.trials if _has_start(trial, made)]
        made[phase.key] = SearchPhase(tuple(evenly_spaced(trials, shares.get(phase.key, len(trials)))), phase.keep)
    return made[last.key]


def evenly_spaced(items: Sequence[T], n: int) -> list[T]:
    """Return n items, evenly spaced, or all if there are fewer.

    >>> evenly_spaced("abcdefgh", 3)
    ['a', 'c', 'f']
    """
    n = min(n, len(items))
    return [items[k * len(items) // n] for k in range(n)]


def _phases(last: SearchPhase) -> Iterator[SearchPhase]:
    """Return the phases of a plan, each once and after those it starts from."""
    seen: set[str] = set()

    def walk(phase: SearchPhase) -> Iterator[SearchPhase]:
        if phase.key not in seen:
            seen.add(phase.key)
            for trial in phase.trials:
                if trial.start:
                    yield from walk(trial.start.phase)
            yield phase

    return walk(last)


def _trials_per_phase(sizes: dict[str, int], total: int, name: str) -> dict[str, int]:
    """Return the number of trials of each phase, by its key."""
    if len(sizes) > total:
        raise UserError(
            f"{name} trains in {len(sizes)} phases, and budget=method allows {total} trial(s): give more values of lr, "
            "weight_decay or dropout, or use budget=same"
        )
    shares, left = dict.fromkeys(sizes, 0), min(total, sum(sizes.values()))
    while left:
        for key in reversed(sizes):
            more = min(left, int(shares[key] < sizes[key]))
            shares[key], left = shares[key] + more, left - more
    return shares


def _has_start(trial: FitSpec, made: dict[str, SearchPhase]) -> bool:
    return trial.start is None or trial.start.rank < len(made[trial.start.phase.key].trials)


def _rebased(trial: FitSpec, made: dict[str, SearchPhase]) -> FitSpec:
    """Return the same trial, started from a phase of the new plan."""
    return replace(trial, start=Winner(made[trial.start.phase.key], trial.start.rank)) if trial.start else trial
