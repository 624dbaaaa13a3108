"""Versions of users' files: which runs used one that a later run has replaced."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from datetime import datetime
from typing import Any

from driftline.naming import short_hash, when
from driftline.record import Run
from driftline.uses import last_use


def superseded(runs: Iterable[Run], comparable: Callable[[Mapping[str, Any]], Hashable]) -> dict[str, dict[str, str]]:
    """Return, by run key, the files of which a comparable run used a newer version: short hash and date of each.

    A version is as new as its last use, by a run that was made or reused. `comparable`: what comparable cards share.
    """
    runs = [run for run in runs if run.card.get("user_files")]
    latest: dict[tuple[Hashable, str], dict[str, datetime]] = defaultdict(dict)
    for run in runs:
        for name, content in run.card["user_files"].items():
            versions = latest[comparable(run.card), name]
            used = last_use(run, name)
            versions[content] = max(used, versions.get(content, used))
    found = {}
    for run in runs:
        older = {}
        for name, content in run.card["user_files"].items():
            versions = latest[comparable(run.card), name]
            if content != max(versions, key=lambda version: (versions[version], version)):
                older[name] = f"{short_hash(content)} ({when(versions[content])})"
        if older:
            found[run.key] = older
    return found
