"""What it saves that methods share their fits."""

from __future__ import annotations

from dataclasses import dataclass

from driftline import state
from driftline.engine.plan import Plan
from driftline.store import Store


@dataclass(frozen=True)
class Sharing:
    """The fits of a plan, each counted once, and once for every run that needs it."""

    fits: int
    fits_alone: int
    macs: int
    macs_alone: int
    seconds: float
    seconds_alone: float


def saved_by_sharing(planned: Plan, store: Store) -> Sharing | None:
    """The cost of a plan's finished fits with and without sharing; None if it has none."""
    costs: dict[str, tuple[int, float]] = {}
    for stage in planned.stages:
        if stage.kind == "fit" and stage.done(store):
            known = state.glance(store.stage_path(stage.key))
            costs[stage.key] = (sum(known["macs"]), known["seconds"])
    if not costs:
        return None
    uses = [key for stage in planned.stages if stage.kind == "deploy" for key in stage.needs if key in costs]
    return Sharing(
        fits=len(costs),
        fits_alone=len(uses),
        macs=sum(macs for macs, _ in costs.values()),
        macs_alone=sum(costs[key][0] for key in uses),
        seconds=sum(seconds for _, seconds in costs.values()),
        seconds_alone=sum(costs[key][1] for key in uses),
    )
