"""Names of methods without their settings, where these are not needed to distinguish methods."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from driftline.report.analysis.result_table import ResultTable

WITH_SETTINGS = re.compile(r"([\w.-]+)\((\w+=.*)\)")


def short_names(methods: Sequence[str]) -> dict[str, str]:
    """Return the name of each method, without settings if no other method has the same name.

    >>> short_names(["ft(lr=0.1)", "er(n=1)", "er(n=2)", "a(b)"])
    {'ft(lr=0.1)': 'ft', 'er(n=1)': 'er(n=1)', 'er(n=2)': 'er(n=2)', 'a(b)': 'a(b)'}
    """
    names = {method: _name(method) for method in methods}
    counts = Counter(names.values())
    return {method: name if counts[name] == 1 else method for method, name in names.items()}


def settings(methods: Sequence[str]) -> dict[str, str]:
    """Return the settings that are left out of each short name."""
    found = {name: method for method, name in short_names(methods).items() if name != method}
    return {name: method[len(name) + 1 : -1] for name, method in found.items()}


def with_short_names(table: ResultTable) -> ResultTable:
    """Return a table with short names of methods."""
    names = short_names(table.group.methods)
    group = replace(table.group, labels={key: names[method] for key, method in table.group.labels.items()})
    rows = tuple(replace(row, method=names[row.method]) for row in table.rows)
    return replace(table, group=group, rows=rows, published={names[m]: rows for m, rows in table.published.items()})


def _name(method: str) -> str:
    found = WITH_SETTINGS.fullmatch(method)
    return found[1] if found else method
