"""Names of methods in tables and figures: the label of a spec, and a method file by its class."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from driftline.errors import unknown_name
from driftline.record.run import Record, Run
from driftline.report.analysis.groups import Group, groups
from driftline.store.labels import read_labels


@dataclass(frozen=True)
class Display:
    """The label of a method, and the heading of its rows if it has one."""

    label: str
    group: str = ""


Displays = Mapping[str, Display]
"""How each method is shown, by its name in `Group.methods`."""


def displays(record: Record) -> Displays:
    """Return how the methods of a record are shown.

    A method that specs gave different labels, and methods that would share one, are shown by their own names.
    """
    names: dict[str, str] = {}
    labels: defaultdict[str, set[str]] = defaultdict(set)
    headings: defaultdict[str, set[str]] = defaultdict(set)
    for group in groups(record):
        for run, (label, heading) in zip(group.runs, read_labels(group.runs), strict=True):
            method = group.labels[run.key]
            distinction = method.removeprefix(run.method)
            names[method] = _short_name(run) + distinction
            labels[method] |= {label + distinction} if label else set()
            headings[method] |= {heading} if heading else set()
    shown = {method: min(labels[method]) if len(labels[method]) == 1 else name for method, name in names.items()}
    counts = Counter(shown.values())
    return {
        method: Display(label if counts[label] == 1 else method, min(headings[method], default=""))
        for method, label in shown.items()
    }


def with_class_names(lines: Iterable[str], shown: Displays) -> tuple[str, ...]:
    """Return lines with method files as they are shown; other names may be words of a sentence, and stay.

    >>> with_class_names(["own.py:Mine(k=2) and ft"], {"own.py:Mine(k=2)": Display("Mine(k=2)"), "ft": Display("FT")})
    ('Mine(k=2) and ft',)
    """
    files = sorted((name for name in shown if ".py:" in name), key=len, reverse=True)
    return tuple(reduce(lambda line, name: line.replace(name, shown[name].label), files, line) for line in lines)


def labeled_groups(record: Record) -> tuple[Group, ...]:
    """Return the groups of a record with methods named as they are shown."""
    shown = displays(record)
    return tuple(
        replace(group, labels={key: shown[method].label for key, method in group.labels.items()})
        for group in groups(record)
    )


def select_methods(record: Record, names: Sequence[str]) -> Record:
    """Return the runs of these methods: names with or without settings, or labels."""
    shown = displays(record)
    found: dict[str, list[Run]] = {name: [] for name in names}
    known: set[str] = set()
    for group in groups(record):
        for method in group.methods:
            aliases = _aliases(group, method, shown)
            known |= aliases
            for name in aliases & found.keys():
                found[name] += group.runs_of(method)
    for name, runs in found.items():
        if not runs:
            raise unknown_name("method", name, known)
    return Record({run.key: run for runs in found.values() for run in runs}.values())


def place(group: Group, method: str, shown: Displays, names: Sequence[str]) -> int:
    """Return the place of a method in a selection."""
    aliases = _aliases(group, method, shown)
    return min(k for k, name in enumerate(names) if name in aliases)


def _aliases(group: Group, method: str, shown: Displays) -> set[str]:
    run = group.runs_of(method)[0]
    return {method, shown[method].label, run.method, _short_name(run), run.common.run.method.name}


def _short_name(run: Run) -> str:
    """Return the method's name with its settings; of a method file, the class stands for the name."""
    name = run.common.run.method.name
    return run.method.replace(name, name.rpartition(":")[2], 1) if ".py:" in name else run.method
