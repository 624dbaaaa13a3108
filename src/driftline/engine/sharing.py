"""What it saves that runs share what they are made from: pretrained models and fits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from driftline import state
from driftline.engine.plan import Plan
from driftline.engine.stages import Stage
from driftline.errors import Damaged
from driftline.store import Store

SHARED = ("upstream", "fit")
"""Kinds of stages that several runs may need."""


@dataclass(frozen=True)
class Sharing:
    """Pretrained models and fits: each counted once; once for every run that needs it (`alone`); and once for every
    trial that rests on it (`anew`), as where each point of a grid is a program of its own."""

    fits: int
    fits_alone: int
    macs: int
    macs_alone: int
    seconds: float
    seconds_alone: float
    fits_anew: int
    macs_anew: int

    @property
    def saved(self) -> float:
        """The share of multiply-accumulates that need not be spent because runs share with each other."""
        return 1 - self.macs / self.macs_alone if self.macs_alone else 0.0

    @property
    def saved_in_all(self) -> float:
        """The same if trials of one run share with each other, too."""
        return 1 - self.macs / self.macs_anew if self.macs_anew else 0.0

    def said(self, saves: str = "saves") -> str:
        """How many fits there are, and what sharing saves."""
        by_run = (
            f"{self.fits:,} fits; {self.fits_alone:,} if no run shared one with another: sharing {saves} "
            f"{100 * self.saved:.0f} % of the multiply-accumulates"
        )
        if self.fits_anew == self.fits_alone:
            return by_run
        in_all = f"{100 * self.saved_in_all:.0f} %"
        return f"{by_run}; {self.fits_anew:,} if every trial trained anew what it starts from: {in_all}"


def saved_by_sharing(planned: Plan, store: Store) -> Sharing | None:
    """The cost of a plan's finished fits with and without sharing; None if it has none."""
    costs: dict[str, tuple[int, float]] = {}
    for stage in planned.stages:
        if stage.kind in SHARED:
            with suppress(Damaged):  # or missing: then it costs nothing yet
                known = state.glance(store.stage_path(stage.key))
                costs[stage.key] = (macs_of(known), known.get("seconds", 0.0))
    return shared(planned.stages, costs)


def macs_of(known: Mapping[str, Any]) -> int:
    """What a stage's file says it cost; nothing where that was not counted."""
    macs = known["macs"]
    return sum(macs) if isinstance(macs, list | tuple) else macs or 0


def billed(stage: Stage, store: Store) -> tuple[int, int]:
    """What the fits that a run needs cost forward and backward, which is on the run's own bill too."""
    paths = (store.stage_path(key) for key in stage.needs)
    fits = [known["macs"] for path in paths if path.exists() and "score" in (known := state.glance(path))]
    return sum(forward for forward, _ in fits), sum(backward for _, backward in fits)


def shared(stages: Iterable[Stage], costs: Mapping[str, tuple[int, float]]) -> Sharing | None:
    """Sharing by what each stage costs in multiply-accumulates and seconds; stages without a cost do not count."""
    if not costs:
        return None
    below: dict[str, frozenset[str]] = {}  # a fit, and all fits that it rests on
    uses: list[str] = []
    anew: list[str] = []
    for stage in stages:
        rests_on = frozenset[str]().union(*(below[key] for key in stage.needs if key in below))
        if stage.kind in SHARED:
            below[stage.key] = rests_on | {stage.key}
        elif stage.is_run:
            uses += [key for key in rests_on if key in costs]
            last = rests_on - frozenset[str]().union(*(below[key] - {key} for key in rests_on))
            anew += [under for key in last for under in below[key] if under in costs]
    return Sharing(
        fits=len(costs),
        fits_alone=len(uses),
        macs=sum(macs for macs, _ in costs.values()),
        macs_alone=sum(costs[key][0] for key in uses),
        seconds=sum(seconds for _, seconds in costs.values()),
        seconds_alone=sum(costs[key][1] for key in uses),
        fits_anew=len(anew),
        macs_anew=sum(costs[key][0] for key in anew),
    )
