"""Printing of settings: each as it is written on a command line, with its meaning, type and default."""

from __future__ import annotations

from typing import Any


def write_settings(formatter: Any, kind: str, name: str) -> None:
    """Write the settings of a thing as a definition list."""
    from driftline.spec.describe import describe

    rows = []
    for setting in describe(kind, name).settings:
        default = f"; default: {setting.default}" if setting.default else ""
        meaning = f"{setting.meaning}. " if setting.meaning else ""
        rows.append((flag(kind, name, setting.name), f"{meaning}[{setting.type}{default}]"))
    if rows:
        formatter.write_dl(rows, col_max=40)


def flag(kind: str, name: str, setting: str) -> str:
    """Return how a setting is given to `driftline run`.

    >>> flag("benchmark", "refinement", "upstream_lr"), flag("dataset", "digits", "periods")
    ('--upstream-lr', '--set data.periods')
    """
    if kind == "benchmark":
        return f"--{setting.replace('_', '-')}"
    if kind == "pretraining":
        return setting  # it belongs to a method's setting `pretraining`
    return f"--set {'data' if kind == 'dataset' else 'model' if kind == 'model' else name}.{setting}"
