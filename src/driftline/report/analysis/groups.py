"""Groups of comparable runs: same benchmark, data, model, options and rules of revealing labels."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

import pandas as pd

from driftline.io.user_objects import version
from driftline.record.card import Card
from driftline.record.run import Record, Run
from driftline.report.analysis.highlights import BY_ORACLE
from driftline.revisions import changed
from driftline.spec.keys import stable_hash
from driftline.store.last_used import last_used
from driftline.store.run_names import format_time, short_hash
from driftline.types import JsonObject, Settings

HEAD = ("benchmark", "data", "model")
NOT_CENSORED = pd.DataFrame({"censored": [], "n": []})


@dataclass(frozen=True)
class Group:
    """Runs that differ only in method and seed."""

    title: str
    runs: tuple[Run, ...]
    labels: Mapping[str, str]
    """Display name of the method, by run key."""
    older: Mapping[str, str] = field(default_factory=dict)
    """User files that other runs used in a newer version: short hash and date of the version used here."""

    @property
    def card(self) -> Card:
        """The card of the first run; its protocol holds for all runs."""
        return self.runs[0].card

    @property
    def benchmark(self) -> str:
        return self.card.run.benchmark

    @property
    def options(self) -> JsonObject:
        """Options of the benchmark."""
        return self.card.run.options

    @cached_property
    def methods(self) -> tuple[str, ...]:
        return tuple(sorted(set(self.labels.values())))

    @cached_property
    def roles(self) -> dict[str, str]:
        """`Learner.role` of each method."""
        return {method: self.runs_of(method)[0].card.role for method in self.methods}

    @cached_property
    def ranked(self) -> frozenset[str]:
        """The methods that know no more than the others: no upper bounds, no settings selected on the test streams."""
        return frozenset(m for m in self.methods if self.roles[m] != "upper-bound" and m not in self.by_oracle)

    @cached_property
    def baseline(self) -> str | None:
        """The method that gains are measured over: of several baselines, the one that needs the fewest labels."""
        found = [method for method, role in self.roles.items() if role == "baseline"]
        return min(found, key=self._labels_needed, default=None)

    @cached_property
    def uses_labels(self) -> frozenset[str]:
        """The methods that learn from labels; the others adapt to inputs alone, or never change."""
        return frozenset(method for method in self.methods if self._labels_needed(method))

    def _labels_needed(self, method: str) -> int:
        needs = self.runs_of(method)[0].card.protocol.get("required_reveal", "labels")
        return ("inputs", "errors", "labels").index(needs)

    @cached_property
    def scores(self) -> pd.DataFrame:
        """All scores, with columns for method and seed."""
        scores = Record(self.runs).scores
        return scores.assign(method=scores["run"].map(dict(self.labels)))

    @cached_property
    def summary(self) -> pd.DataFrame:
        """The scores that summarize a run, with columns for method and seed."""
        scores = Record(self.runs).summary
        return scores.assign(method=scores["run"].map(dict(self.labels)))

    @cached_property
    def censored(self) -> pd.DataFrame:
        """By metric, the number of scores per time, and how many are censored by the end of the data."""
        counts = Record(self.runs).censored
        return counts.groupby("metric")[["censored", "n"]].sum() if len(counts) else NOT_CENSORED

    @cached_property
    def score_names(self) -> dict[tuple[str, str], None]:
        """The pairs of metric and statistic that summarize its runs, in their order."""
        pairs = self.summary[["metric", "stat"]].drop_duplicates()
        return dict.fromkeys(zip(pairs["metric"], pairs["stat"], strict=True))

    @cached_property
    def by_oracle(self) -> tuple[str, ...]:
        """Methods whose settings were selected on the test streams."""
        return tuple(sorted({self.labels[run.key] for run in self.runs if _by_oracle(run.common)}))

    @property
    def notes(self) -> list[str]:
        """Caveats that apply to all numbers of the group."""
        return []

    def runs_of(self, method: str) -> tuple[Run, ...]:
        return self._by_method.get(method, ())

    @cached_property
    def _by_method(self) -> dict[str, tuple[Run, ...]]:
        found: dict[str, list[Run]] = defaultdict(list)
        for run in self.runs:
            found[self.labels[run.key]].append(run)
        return {method: tuple(runs) for method, runs in found.items()}


def groups(record: Record) -> tuple[Group, ...]:
    """Return the runs of a record in groups, sorted by title.

    A run given twice counts once. Runs that used an older version of a user's file, or an older revision of the code,
    form groups of their own.
    """
    members: dict[Hashable, list[Run]] = defaultdict(list)
    runs = {run.key: run for run in record.runs}.values()
    older = older_versions(runs)
    known: dict[tuple[str, Hashable], Hashable] = {}  # thousands of seeds share the settings of their card
    for run in runs:
        settings = run.common_text, tuple(older.get(run.key, {}).items())
        if settings not in known:
            known[settings] = _hashable(_comparison_key(run.common, older.get(run.key)))
        members[known[settings]].append(run)
    keys = [_comparison_key(group[0].card, older.get(group[0].key)) for group in members.values()]
    made = [
        Group(
            _title(key, keys),
            tuple(sorted(runs, key=lambda run: (run.method, run.seed))),
            _labels(runs),
            older.get(runs[0].key, {}),
        )
        for key, runs in zip(keys, members.values(), strict=True)
    ]
    return tuple(sorted(made, key=lambda group: group.title))


def newest(record: Record) -> list[Group]:
    """Return the groups without those of older versions of a user's file."""
    return [group for group in groups(record) if not group.older]


def older_versions(runs: Iterable[Run]) -> dict[str, dict[str, str]]:
    """Return by run key the user files that a comparable run used in a newer version: short hash and date of each.

    The age of a version is that of its last use, by a new or a reused run.
    """
    runs = [run for run in runs if run.common.user_files]
    latest: dict[tuple[Hashable, str], dict[str, datetime]] = defaultdict(dict)
    for run in runs:
        for name, content in run.common.user_files.items():
            versions = latest[_hashable(_comparison_key(run.common)), name]
            used = last_used(run, name)
            versions[content] = max(used, versions.get(content, used))
    replaced = {}
    for run in runs:
        older = {}
        for name, content in run.common.user_files.items():
            versions = latest[_hashable(_comparison_key(run.common)), name]
            if content != max(versions, key=lambda version: (versions[version], version)):
                older[name] = f"{short_hash(content)} ({format_time(versions[content])})"
        if older:
            replaced[run.key] = older
    return replaced


def _comparison_key(card: Card, older: Mapping[str, str] | None = None) -> JsonObject:
    """Return what two comparable runs share, flat, by the names of a spec."""
    run, rules = card.run, card.protocol.get("label_rules")
    parts = {
        "data": run.data.settings,
        "model": run.model.settings,
        run.benchmark: run.options,
        "reveal": {**run.reveal, **({"rules": ", ".join(rules)} if rules else {})},
        "device": run.device,
    }
    return {
        "benchmark": run.benchmark,
        "data": run.data.display_name,
        "model": run.model.display_name,
        "model version": version(run.model.name),
        **{f"{part}.{key}": value for part, settings in parts.items() for key, value in settings.items()},
        **({} if run.budget_macs is None else {"budget_macs": f"{run.budget_macs:.4g}"}),
        "fingerprint": card.data.fingerprint,
        **{f"revision of {part}": old for part, (old, _) in changed(card.code.revisions).items()},
        **{f"older {name}": version for name, version in (older or {}).items()},
    }


def group_ignoring(found: Iterable[Group], ignored: Iterable[str]) -> list[tuple[str, list[Group]]]:
    """Return sets of groups that differ only in the `ignored` settings, each with the settings that identify it.

    `model` ignores the name of the model, `data.` every setting that starts with it.
    """
    sets: dict[Hashable, list[Group]] = defaultdict(list)
    fixed: dict[Hashable, JsonObject] = {}
    ignored = tuple(ignored)
    for group in found:
        setting = {
            key: value
            for key, value in _comparison_key(group.card, group.older).items()
            if key not in ignored and not any(key.startswith(name) for name in ignored if name.endswith("."))
        }
        fixed[_hashable(setting)] = setting
        sets[_hashable(setting)].append(group)
    differing = _differing(fixed.values())
    texts = {name: " · ".join(f"{key}={setting.get(key)}" for key in differing) for name, setting in fixed.items()}
    return sorted(((texts[name], members) for name, members in sets.items()), key=lambda pair: pair[0])


def _title(key: Settings, others: Iterable[Settings]) -> str:
    """Return benchmark, data, model and sequence of shifts, and the settings that differ from similar groups."""
    shifts = f"{key['benchmark']}.shifts"
    head = [*HEAD, *([shifts] if shifts in key else [])]
    alike = [other for other in others if all(other.get(name) == key[name] for name in head)]
    differing = _differing(alike)
    if any(name.startswith("data.") for name in differing):
        differing = [name for name in differing if name != "fingerprint"]  # it differs because the settings do
    settings = [f"{name}={key[name]}" for name in differing if name in key]
    return " · ".join([*(str(key[name]) for name in head), *settings])


def _labels(runs: Iterable[Run]) -> dict[str, str]:
    """Return the display name of each run's method, with the settings that differ where two methods share a name."""
    named: dict[str, dict[str, JsonObject]] = defaultdict(dict)
    runs = list(runs)
    for text, run in {run.common_text: run for run in runs}.items():
        label = f"{run.method}{BY_ORACLE if _by_oracle(run.common) else ''}"
        asked = run.common.run
        named[label][text] = {**asked.method.settings, "lora": asked.lora, "selection": _selection(run.common)}
    labels = {}
    for label, settings in named.items():
        differing = _differing(settings.values())
        for key, values in settings.items():
            text = ", ".join(f"{name}={values.get(name)}" for name in differing)
            labels[key] = f"{label} [{text}]" if text else label
    return {run.key: labels[run.common_text] for run in runs}


def _by_oracle(card: Card) -> bool:
    search = card.run.search
    return search is not None and search["rule"] == "oracle"


def _selection(card: Card) -> str:
    """Return how settings were selected; a short hash distinguishes searches of the same size."""
    search = card.run.search
    if search is None:
        return "none"
    decisive = (
        {**search, "seeds": None} if search.get("repeats", 1) > 1 else search
    )  # a repeated search has others per seed
    return f"best of {len(search['candidates'])} by {search['rule']} ({stable_hash(decisive)[:4]})"


def _differing(mappings: Iterable[Settings]) -> list[str]:
    """Return the keys whose values are not the same in all mappings, in order of appearance."""
    mappings = list(mappings)
    keys = dict.fromkeys(key for mapping in mappings for key in mapping)
    return [key for key in keys if len({_hashable(mapping.get(key)) for mapping in mappings}) > 1]


def _hashable(content: object) -> Hashable:
    return json.dumps(content, sort_keys=True)
