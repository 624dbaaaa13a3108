"""A setting that varies between runs of one method, such as how often `rdumb` is reset, and what comes of it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from driftline.errors import UserError
from driftline.report.analysis.estimates import Measured, measured
from driftline.report.analysis.frozen_baseline import STREAM
from driftline.report.analysis.groups import Group


@dataclass(frozen=True)
class Swept:
    """One value of the setting: the method without it, and its accuracy."""

    method: str
    setting: str
    at: float
    cell: Measured


def settings_of(group: Group) -> list[str]:
    """The settings that are numbers and differ between runs of one method, as `rdumb.every`."""
    seen: dict[str, set[float]] = defaultdict(set)
    for run in group.runs:
        method = run.card["run"]["method"]
        for name, value in method["settings"].items():
            if _number(value):
                seen[f"{method['name']}.{name}"].add(value)
    return [name for name, values in seen.items() if len(values) > 1]


def swept(group: Group, setting: str, metric: str = STREAM) -> Iterator[Swept]:
    """The runs of a method by a setting of it, from its lowest value to its highest."""
    name, dot, of = setting.partition(".")
    if not dot:
        raise UserError(f"a setting is named with its method, as rdumb.every, not '{setting}'")
    cells = measured(group, metric)
    found = {}
    for run in group.runs:
        method, label = run.card["run"]["method"], group.labels[run.key]
        if method["name"] == name and _number(method["settings"].get(of)) and label in cells:
            found[label] = Swept(without(label, of), of, method["settings"][of], cells[label])
    yield from sorted(found.values(), key=lambda one: (one.method, one.at))


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def without(label: str, setting: str) -> str:
    """A method's label without one of its settings.

    >>> without("rdumb(lr=0.001, every=125)", "every"), without("rdumb(every=125)", "every"), without("eta", "lr")
    ('rdumb(lr=0.001)', 'rdumb', 'eta')
    """
    name, _, inside = label.partition("(")
    told: list[Any] = [one for one in re.split(r", (?=\w+=)", inside.removesuffix(")")) if one]
    told = [one for one in told if one.partition("=")[0] != setting]
    return name + (f"({', '.join(told)})" if told else "")
