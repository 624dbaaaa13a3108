"""Runs that differ in one averaged option, such as the speed of `test-time`, combined into one group.

The RDumb paper averages three speeds and three seeds. Runs of one seed share the order of corruptions, so they are not
independent: the value of a seed is its mean over speeds, and intervals are over seeds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from driftline.report.analysis.groups import Group, group_ignoring

BENCHMARK = "test-time"
SPEED = f"{BENCHMARK}.speed"
KEYS = ["method", "seed", "metric", "stat", "time", "tau"]


@dataclass(frozen=True)
class AveragedGroup(Group):
    """Groups that differ only in speed, as one group."""

    members: tuple[Group, ...] = ()

    @cached_property
    def scores(self) -> pd.DataFrame:
        """The mean over speeds of each seed, without an interval of its own; `n` counts the images of all speeds."""
        rows = pd.concat([group.scores for group in self.members], ignore_index=True)
        parts = rows.groupby(KEYS, dropna=False, sort=False)
        means = parts.agg(value=("value", "mean"), n=("n", "sum"), unit=("unit", "first"), run=("run", "first"))
        return means.assign(low=float("nan"), high=float("nan")).reset_index()

    @property
    def notes(self) -> list[str]:
        notes = [
            f"The value of a seed is its mean over {len(self.members)} speeds, which share the order of corruptions."
        ]
        seeds = {m: [{run.seed for run in group.runs_of(m)} for group in self.members] for m in self.methods}
        incomplete = [method for method, sets in seeds.items() if any(seeds != sets[0] for seeds in sets)]
        if incomplete:
            notes.append(f"Caution: not run at every speed with every seed: {', '.join(incomplete)}.")
        return notes


def average_repeats(found: Iterable[Group]) -> list[Group]:
    """Return the groups, with those that differ only in speed combined."""
    combined: list[Group] = []
    for _, members in group_ignoring(found, [SPEED]):
        if len(members) == 1:
            combined += members
            continue
        runs = tuple(run for group in members for run in group.runs)
        labels = {key: label for group in members for key, label in group.labels.items()}
        combined.append(AveragedGroup(_title(members), runs, labels, members[0].older, tuple(members)))
    return sorted(combined, key=lambda group: group.title)


def _title(members: list[Group]) -> str:
    speeds = sorted({int(group.options["speed"]) for group in members})
    parts = [part for part in members[0].title.split(" · ") if not part.startswith(f"{SPEED}=")]
    return " · ".join([*parts, f"speeds {', '.join(map(str, speeds))}"])
