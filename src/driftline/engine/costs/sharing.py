"""What sharing saves: pretrained models and fits are computed once for all runs that need them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from driftline.engine.planning.plan import Plan
from driftline.engine.stages import Stage, StreamRun
from driftline.errors import Damaged
from driftline.store import Store


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

    def describe(self, saves: str = "saves") -> str:
        """Return how many fits there are, and what sharing saves."""
        by_run = (
            f"{self.fits:,} fits; {self.fits_alone:,} if no run shared one with another: sharing {saves} "
            f"{100 * self.saved:.0f} % of the multiply-accumulates"
        )
        if self.fits_anew == self.fits_alone:
            return by_run
        in_all = f"{100 * self.saved_in_all:.0f} %"
        return f"{by_run}; {self.fits_anew:,} if every trial trained anew what it starts from: {in_all}"


def sharing_savings(plan: Plan, store: Store) -> Sharing | None:
    """Return the cost of a plan's finished fits with and without sharing; None if it has none."""
    costs: dict[str, tuple[int, float]] = {}
    for stage in plan.stages:
        if stage.shareable:
            with suppress(Damaged):  # or missing: then it costs nothing yet
                seconds, macs = stage.recorded_cost(store) or (0.0, 0)
                costs[stage.key] = (macs, seconds)
    return shared(plan.stages, costs)


def shared(stages: Iterable[Stage], costs: Mapping[str, tuple[int, float]]) -> Sharing | None:
    """Return what sharing saves, given the MACs and seconds of each stage; stages without a cost do not count."""
    if not costs:
        return None
    below: dict[str, frozenset[str]] = {}  # a fit, and all fits that it rests on
    uses: list[str] = []
    anew: list[str] = []
    for stage in stages:
        rests_on = frozenset[str]().union(*(below[key] for key in stage.needs if key in below))
        if stage.shareable:
            below[stage.key] = rests_on | {stage.key}
        elif isinstance(stage, StreamRun):
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
