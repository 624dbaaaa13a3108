"""Runs that differ in one averaged option, such as `images_per_point` of `test-time`, combined into one group.

Runs of one seed are not independent of each other: the value of a seed is its mean over the option, and intervals are
over seeds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from driftline import registry
from driftline.report.analysis.groups import NOT_CENSORED, Group, group_ignoring

KEYS = ["method", "seed", "metric", "stat", "time", "tau"]


@dataclass(frozen=True)
class AveragedGroup(Group):
    """Groups that differ only in one option, as one group."""

    members: tuple[Group, ...] = ()

    @cached_property
    def scores(self) -> pd.DataFrame:
        """The mean over the option of each seed, without an interval of its own; `n` is the sum over the option."""
        return _averaged([group.scores for group in self.members])

    @cached_property
    def summary(self) -> pd.DataFrame:
        """The means over the option of the scores that summarize a run."""
        return _averaged([group.summary for group in self.members])

    @property
    def censored(self) -> pd.DataFrame:
        """A mean is not censored."""
        return NOT_CENSORED

    @property
    def notes(self) -> list[str]:
        option = _option(self)
        notes = [f"The value of a seed is its mean over {len(self.members)} values of {option}."]
        seeds = {m: [{run.seed for run in group.runs_of(m)} for group in self.members] for m in self.methods}
        incomplete = [method for method, sets in seeds.items() if any(seeds != sets[0] for seeds in sets)]
        if incomplete:
            notes.append(f"Caution: not run at every {option} with every seed: {', '.join(incomplete)}.")
        return notes


def _averaged(scores: list[pd.DataFrame]) -> pd.DataFrame:
    rows = pd.concat(scores, ignore_index=True)
    parts = rows.groupby(KEYS, dropna=False, sort=False)
    means = parts.agg(value=("value", "mean"), n=("n", "sum"), unit=("unit", "first"), run=("run", "first"))
    return means.assign(low=float("nan"), high=float("nan")).reset_index()


def average_repeats(found: Iterable[Group]) -> list[Group]:
    """Return the groups, with those that differ only in what their benchmark averages over combined."""
    combined: list[Group] = []
    found = list(found)
    ignored = {f"{group.benchmark}.{option}" for group in found if (option := _option(group))}
    for _, members in group_ignoring(found, sorted(ignored)):
        if len(members) == 1:
            combined += members
            continue
        runs = tuple(run for group in members for run in group.runs)
        labels = {key: label for group in members for key, label in group.labels.items()}
        combined.append(AveragedGroup(_title(members), runs, labels, members[0].older, tuple(members)))
    return sorted(combined, key=lambda group: group.title)


def _option(group: Group) -> str | None:
    """Return the option that a group's benchmark averages over."""
    option: str | None = registry.get("benchmark", group.benchmark).averaged_over
    return option


def _title(members: list[Group]) -> str:
    name, option = members[0].benchmark, _option(members[0])
    values = sorted({group.options[str(option)] for group in members})
    parts = [part for part in members[0].title.split(" · ") if not part.startswith(f"{name}.{option}=")]
    return " · ".join([*parts, f"{option} {', '.join(map(str, values))}"])
