"""Scores by a setting that varies between runs of one method, such as the reset interval of `rdumb`."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from driftline.errors import UserError
from driftline.report.analysis.estimates import Estimate, estimates
from driftline.report.analysis.frozen_baseline import STREAM
from driftline.report.analysis.groups import Group


@dataclass(frozen=True)
class SweepPoint:
    """One value of the setting: the method without the setting, and its score."""

    method: str
    setting: str
    value: float
    score: Estimate


def varying_settings(group: Group) -> list[str]:
    """Return the numeric settings that differ between runs of one method, such as `rdumb.reset_every`."""
    seen: dict[str, set[float]] = defaultdict(set)
    for run in group.runs:
        method = run.common.run.method
        for name, value in method.settings.items():
            if _is_number(value):
                seen[f"{method.name}.{name}"].add(value)
    return [name for name, values in seen.items() if len(values) > 1]


def sweep_points(group: Group, setting: str) -> Iterator[SweepPoint]:
    """Yield the scores of a method by one of its settings, in increasing order of its value."""
    name, dot, key = setting.partition(".")
    if not dot:
        raise UserError(f"a setting is named with its method, as rdumb.reset_every, not '{setting}'")
    scores = estimates(group, STREAM)
    points = {}
    for run in group.runs:
        method, label = run.common.run.method, group.labels[run.key]
        if method.name == name and _is_number(method.settings.get(key)) and label in scores:
            points[label] = SweepPoint(without_setting(label, key), key, method.settings[key], scores[label])
    yield from sorted(points.values(), key=lambda point: (point.method, point.value))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def without_setting(label: str, setting: str) -> str:
    """Return a method's display name without one of its settings.

    >>> without_setting("rdumb(lr=0.001, reset_every=125)", "reset_every"), without_setting("rdumb(lr=0.1)", "lr")
    ('rdumb(lr=0.001)', 'rdumb')
    """
    name, _, inside = label.partition("(")
    settings = [one for one in re.split(r", (?=\w+=)", inside.removesuffix(")")) if one]
    settings = [one for one in settings if one.partition("=")[0] != setting]
    return name + (f"({', '.join(settings)})" if settings else "")
