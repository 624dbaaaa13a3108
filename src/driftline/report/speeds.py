"""Runs that differ only in the option that their benchmark averages over, such as the speed of `test-time`.

The runs of a seed are no replicates of each other: a seed's value is its mean over the option, and intervals are over
seeds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from driftline import registry
from driftline.report.groups import Group, together

KEYS = ["method", "seed", "metric", "stat", "time", "tau"]


@dataclass(frozen=True)
class OverSpeeds(Group):
    """Groups that differ in one option alone, as one."""

    members: tuple[Group, ...] = ()

    @cached_property
    def scores(self) -> pd.DataFrame:
        """Each seed's mean over the option; it has no interval of its own, and n is the sum over the option."""
        rows = pd.concat([group.scores for group in self.members], ignore_index=True)
        parts = rows.groupby(KEYS, dropna=False, sort=False)
        means = parts.agg(value=("value", "mean"), n=("n", "sum"), unit=("unit", "first"), run=("run", "first"))
        return means.assign(low=float("nan"), high=float("nan")).reset_index()

    def said(self) -> list[str]:
        """Return the notes under a table of this group."""
        option = _option(self)
        lines = [f"A seed's value is its mean over {len(self.members)} {option}s."]
        seeds = {method: [{run.seed for run in one.runs_of(method)} for one in self.members] for method in self.methods}
        partly = [method for method, by_member in seeds.items() if any(of != by_member[0] for of in by_member)]
        if partly:
            lines.append(f"Caution: not run at every {option} with every seed: {', '.join(partly)}.")
        return lines


def over_speeds(found: Iterable[Group]) -> list[Group]:
    """Return the groups, with those that differ only in what their benchmark averages over as one."""
    made: list[Group] = []
    found = list(found)
    free = {f"{group.card['run']['benchmark']}.{option}" for group in found if (option := _option(group))}
    for _, members in together(found, sorted(free)):
        if len(members) == 1:
            made += members
            continue
        runs = tuple(run for group in members for run in group.runs)
        labels = {key: label for group in members for key, label in group.labels.items()}
        made.append(OverSpeeds(_title(members), runs, labels, members[0].older, tuple(members)))
    return sorted(made, key=lambda group: group.title)


def _option(group: Group) -> str | None:
    """Return the option that a group's benchmark averages over."""
    option: str | None = registry.get("benchmark", group.card["run"]["benchmark"]).averaged_over
    return option


def _title(members: list[Group]) -> str:
    run, option = members[0].card["run"], _option(members[0])
    values = sorted({group.card["run"]["options"][option] for group in members})
    parts = [part for part in members[0].title.split(" · ") if not part.startswith(f"{run['benchmark']}.{option}=")]
    return " · ".join([*parts, f"{option}s {', '.join(map(str, values))}"])
