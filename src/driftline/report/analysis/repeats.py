"""Runs of `test-time` that differ in their speed alone, taken together as the RDumb paper does.

Three speeds by three seeds make up one of its numbers. The runs of a seed share the order of their corruptions, so they
are no replicates of each other: a seed's value is its mean over speeds, and intervals are over seeds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from driftline.report.analysis.groups import Group, together

BENCHMARK = "test-time"
SPEED = f"{BENCHMARK}.speed"
KEYS = ["method", "seed", "metric", "stat", "time", "tau"]


@dataclass(frozen=True)
class OverSpeeds(Group):
    """Groups that differ in speed alone, as one."""

    members: tuple[Group, ...] = ()

    @cached_property
    def scores(self) -> pd.DataFrame:
        """Each seed's mean over speeds; it has no interval of its own, and rests on all of their images."""
        rows = pd.concat([group.scores for group in self.members], ignore_index=True)
        parts = rows.groupby(KEYS, dropna=False, sort=False)
        means = parts.agg(value=("value", "mean"), n=("n", "sum"), unit=("unit", "first"), run=("run", "first"))
        return means.assign(low=float("nan"), high=float("nan")).reset_index()

    def said(self) -> list[str]:
        """What a reader of its numbers must know."""
        lines = [f"A seed's value is its mean over {len(self.members)} speeds, which share their order of corruptions."]
        seeds = {method: [{run.seed for run in one.runs_of(method)} for one in self.members] for method in self.methods}
        partly = [method for method, of_speeds in seeds.items() if any(of != of_speeds[0] for of in of_speeds)]
        if partly:
            lines.append(f"Caution: not run at every speed with every seed: {', '.join(partly)}.")
        return lines


def over_speeds(found: Iterable[Group]) -> list[Group]:
    """The groups, those that differ in speed alone as one; any other group is left as it is."""
    made: list[Group] = []
    for _, members in together(found, [SPEED]):
        if len(members) == 1:
            made += members
            continue
        runs = tuple(run for group in members for run in group.runs)
        labels = {key: label for group in members for key, label in group.labels.items()}
        made.append(OverSpeeds(_title(members), runs, labels, members[0].older, tuple(members)))
    return sorted(made, key=lambda group: group.title)


def _title(members: list[Group]) -> str:
    speeds = sorted({int(group.card["run"]["options"]["speed"]) for group in members})
    told = [part for part in members[0].title.split(" · ") if not part.startswith(f"{SPEED}=")]
    return " · ".join([*told, f"speeds {', '.join(map(str, speeds))}"])
