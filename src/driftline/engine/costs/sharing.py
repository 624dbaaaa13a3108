"""Savings by sharing: pretrained models and fits are computed once for all runs that need them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from driftline.engine.planning.plan import Plan
from driftline.engine.stages import Stage, StreamRun
from driftline.errors import DamagedFile
from driftline.store.store import Store


@dataclass(frozen=True)
class Sharing:
    """Costs of pretrained models and fits: shared, without sharing between runs, and without reuse between fits.

    Without sharing, every run that needs a fit computes it. Without reuse, every fit also trains what it starts from.
    """

    fits: int
    fits_without_sharing: int
    macs: int
    macs_without_sharing: int
    fits_without_reuse: int
    macs_without_reuse: int

    @property
    def saved(self) -> float:
        """The share of multiply-accumulates that need not be spent because runs share with each other."""
        return 1 - self.macs / self.macs_without_sharing if self.macs_without_sharing else 0.0

    @property
    def saved_with_reuse(self) -> float:
        """The same if the fits of one run share with each other, too."""
        return 1 - self.macs / self.macs_without_reuse if self.macs_without_reuse else 0.0

    def describe(self, saves: str = "saves") -> str:
        """Return how many fits there are, and what sharing saves."""
        by_run = (
            f"{self.fits:,} fits; {self.fits_without_sharing:,} if no run shared one with another: sharing {saves} "
            f"{100 * self.saved:.0f} % of the multiply-accumulates"
        )
        if self.fits_without_reuse == self.fits_without_sharing:
            return by_run
        in_all = f"{100 * self.saved_with_reuse:.0f} %"
        return f"{by_run}; {self.fits_without_reuse:,} if every fit also trained what it starts from: {in_all}"


def sharing_savings(plan: Plan, store: Store) -> Sharing | None:
    """Return the cost of a plan's finished fits with and without sharing; None if it has none."""
    macs: dict[str, int] = {}
    for stage in plan.stages:
        if stage.shareable:
            with suppress(DamagedFile):  # or missing: then it costs nothing yet
                _, macs[stage.key] = stage.recorded_cost(store) or (0.0, 0)
    return compute_sharing(plan.stages, macs)


def compute_sharing(stages: Iterable[Stage], macs: Mapping[str, int]) -> Sharing | None:
    """Return what sharing saves, given the multiply-accumulates of each stage; stages without any do not count."""
    if not macs:
        return None
    chains: dict[str, frozenset[str]] = {}  # a fit, and all fits that it starts from
    without_sharing: list[str] = []
    without_reuse: list[str] = []
    for stage in stages:
        needed = frozenset[str]().union(*(chains[key] for key in stage.needs if key in chains))
        if stage.shareable:
            chains[stage.key] = needed | {stage.key}
        elif isinstance(stage, StreamRun):
            without_sharing += [key for key in needed if key in macs]
            last = needed - frozenset[str]().union(*(chains[key] - {key} for key in needed))
            without_reuse += [key for end in last for key in chains[end] if key in macs]
    return Sharing(
        fits=len(macs),
        fits_without_sharing=len(without_sharing),
        macs=sum(macs.values()),
        macs_without_sharing=sum(macs[key] for key in without_sharing),
        fits_without_reuse=len(without_reuse),
        macs_without_reuse=sum(macs[key] for key in without_reuse),
    )
