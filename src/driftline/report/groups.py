"""Runs that may be compared stand together: same benchmark, data, model, options and rules of revealing."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pandas as pd

from driftline.record import Record, Run
from driftline.report.marks import BY_ORACLE
from driftline.report.versions import superseded
from driftline.spec.keys import stable_hash

HEAD = ("benchmark", "data", "model")


@dataclass(frozen=True)
class Group:
    """Runs in which nothing differs but the method and the seed."""

    title: str
    runs: tuple[Run, ...]
    labels: Mapping[str, str]
    """The method of each run, by the run's key, as tables and charts call it."""
    older: Mapping[str, str] = field(default_factory=dict)
    """The users' files of which other runs used a newer version: the hash and date of the one that these used."""

    @property
    def card(self) -> dict[str, Any]:
        """The card of the first run; what it says of the protocol holds for all."""
        return self.runs[0].card

    @cached_property
    def methods(self) -> tuple[str, ...]:
        return tuple(sorted(set(self.labels.values())))

    @cached_property
    def scores(self) -> pd.DataFrame:
        """All rows of scores, with columns for method and seed."""
        scores = Record(self.runs).scores
        return scores.assign(method=scores["run"].map(dict(self.labels)))

    @cached_property
    def by_oracle(self) -> tuple[str, ...]:
        """Methods whose settings were chosen on the very streams that they are tested on."""
        return tuple(sorted({self.labels[run.key] for run in self.runs if _by_oracle(run.card)}))

    def runs_of(self, method: str) -> tuple[Run, ...]:
        return tuple(run for run in self.runs if self.labels[run.key] == method)


def groups(record: Record) -> tuple[Group, ...]:
    """The record's runs in groups, sorted by title; a run that is given twice counts once.

    Runs that used an older version of a user's file are groups of their own.
    """
    members: dict[Hashable, list[Run]] = defaultdict(list)
    once = {run.key: run for run in record.runs}.values()
    older = older_versions(once)
    for run in once:
        members[_hashable(_setting(run.card, older.get(run.key)))].append(run)
    settings = [_setting(runs[0].card, older.get(runs[0].key)) for runs in members.values()]
    made = [
        Group(
            _title(setting, settings),
            tuple(sorted(runs, key=lambda run: (run.method, run.seed))),
            _labels(runs),
            older.get(runs[0].key, {}),
        )
        for setting, runs in zip(settings, members.values(), strict=True)
    ]
    return tuple(sorted(made, key=lambda group: group.title))


def newest(record: Record) -> list[Group]:
    """The groups without those of older versions of a user's file: such a version is no setting of its own."""
    return [group for group in groups(record) if not group.older]


def older_versions(runs: Iterable[Run]) -> dict[str, dict[str, str]]:
    """By run key, the users' files of which a comparable run used a newer version, and the version that it used."""
    return superseded(runs, lambda card: _hashable(_setting(card)))


def _setting(card: Mapping[str, Any], older: Mapping[str, str] | None = None) -> dict[str, Any]:
    """What must be the same for two runs to be comparable, flat, by the names used in a spec."""
    run = card["run"]
    parts = {
        "data": run["data"]["settings"],
        "model": run["model"]["settings"],
        run["benchmark"]: run["options"],
        "reveal": run["reveal"],
    }
    return {
        "benchmark": run["benchmark"],
        "data": run["data"]["name"],
        "model": run["model"]["name"],
        **{f"{part}.{key}": value for part, settings in parts.items() for key, value in settings.items()},
        "fingerprint": card["data"]["fingerprint"],
        "driftline": card["code"]["driftline"],
        **{f"older {name}": version for name, version in (older or {}).items()},
    }


def together(found: Iterable[Group], free: Iterable[str]) -> list[tuple[str, list[Group]]]:
    """Groups that differ in nothing but the settings named `free`, and what tells each such set from the others.

    `model` frees the model's name, `data.` everything that begins so.
    """
    sets: dict[Hashable, list[Group]] = defaultdict(list)
    fixed: dict[Hashable, dict[str, Any]] = {}
    free = tuple(free)
    for group in found:
        setting = {
            key: value
            for key, value in _setting(group.card, group.older).items()
            if key not in free and not any(key.startswith(name) for name in free if name.endswith("."))
        }
        fixed[_hashable(setting)] = setting
        sets[_hashable(setting)].append(group)
    differing = _differing(fixed.values())
    told = {name: " · ".join(f"{key}={setting.get(key)}" for key in differing) for name, setting in fixed.items()}
    return sorted(((told[name], members) for name, members in sets.items()), key=lambda pair: pair[0])


def _title(setting: Mapping[str, Any], others: Iterable[Mapping[str, Any]]) -> str:
    """Benchmark, data, model and sequence of shifts, then what tells this group from others with the same."""
    shifts = f"{setting['benchmark']}.shifts"
    head = [*HEAD, *([shifts] if shifts in setting else [])]
    alike = [other for other in others if all(other.get(key) == setting[key] for key in head)]
    differing = _differing(alike)
    if any(key.startswith("data.") for key in differing):
        differing = [key for key in differing if key != "fingerprint"]  # it differs because the settings do
    told = [f"{key}={setting[key]}" for key in differing if key in setting]
    return " · ".join([*(str(setting[key]) for key in head), *told])


def _labels(runs: Iterable[Run]) -> dict[str, str]:
    """Labels by run; where two methods share one, the settings that tell them apart are added.

    Settings that were chosen on the test are marked wherever the method is named.
    """
    named: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    for run in runs:
        label = f"{run.method}{BY_ORACLE if _by_oracle(run.card) else ''}"
        named[label][run.key] = {**run.card["run"]["method"]["settings"], "selection": _selection(run.card)}
    labels = {}
    for label, settings in named.items():
        differing = _differing(settings.values())
        for key, given in settings.items():
            told = ", ".join(f"{name}={given.get(name)}" for name in differing)
            labels[key] = f"{label} [{told}]" if told else label
    return labels


def _by_oracle(card: Mapping[str, Any]) -> bool:
    contest = card["run"].get("search")
    return contest is not None and contest["rule"] == "oracle"


def _selection(card: Mapping[str, Any]) -> str:
    """How settings were chosen, in few words; two searches of one size are told apart by the start of a hash."""
    contest = card["run"].get("search")
    if contest is None:
        return "none"
    return f"best of {len(contest['candidates'])} by {contest['rule']} ({stable_hash(contest)[:4]})"


def _differing(mappings: Iterable[Mapping[str, Any]]) -> list[str]:
    """The keys that do not have the same value in all mappings, in order of appearance."""
    seen: dict[str, set[Hashable]] = {}
    mappings = list(mappings)
    for key in dict.fromkeys(key for mapping in mappings for key in mapping):
        seen[key] = {_hashable(mapping.get(key)) for mapping in mappings}
    return [key for key, values in seen.items() if len(values) > 1]


def _hashable(content: Any) -> Hashable:
    return json.dumps(content, sort_keys=True)
