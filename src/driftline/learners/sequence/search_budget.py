"""Search budget: the same number of fits for every method, whatever its number of phases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from driftline.errors import UserError
from driftline.learners.fit_plan import FitSpec, SearchPhase, Winner

T = TypeVar("T")


def limit_to_budget(last: SearchPhase, total: int, name: str) -> SearchPhase:
    """Return a plan with `total` fits that train, or fewer if it has no more, shared evenly between its phases.

    A fit left over goes to a later phase. Each phase keeps evenly spaced fits.
    """
    order = list(_phases(last))
    shares = _fits_per_phase({phase.key: len(phase.fits) for phase in order if phase.fits[0].trains}, total, name)
    made: dict[str, SearchPhase] = {}
    for phase in order:
        fits = [_rebased(fit_spec, made) for fit_spec in phase.fits if _has_start(fit_spec, made)]
        made[phase.key] = SearchPhase(tuple(evenly_spaced(fits, shares.get(phase.key, len(fits)))), phase.keep)
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
            for fit_spec in phase.fits:
                if fit_spec.start:
                    yield from walk(fit_spec.start.phase)
            yield phase

    return walk(last)


def _fits_per_phase(sizes: dict[str, int], total: int, name: str) -> dict[str, int]:
    """Return the number of fits of each phase, by its key."""
    if len(sizes) > total:
        raise UserError(
            f"{name} trains in {len(sizes)} phases, and budget=method allows {total} fit(s): give more values of lr, "
            "weight_decay or dropout, or use budget=same"
        )
    shares, left = dict.fromkeys(sizes, 0), min(total, sum(sizes.values()))
    while left:
        for key in reversed(sizes):
            more = min(left, int(shares[key] < sizes[key]))
            shares[key], left = shares[key] + more, left - more
    return shares


def _has_start(fit_spec: FitSpec, made: dict[str, SearchPhase]) -> bool:
    return fit_spec.start is None or fit_spec.start.rank < len(made[fit_spec.start.phase.key].fits)


def _rebased(fit_spec: FitSpec, made: dict[str, SearchPhase]) -> FitSpec:
    """Return the same fit, started from a phase of the new plan."""
    return (
        replace(fit_spec, start=Winner(made[fit_spec.start.phase.key], fit_spec.start.rank))
        if fit_spec.start
        else fit_spec
    )
