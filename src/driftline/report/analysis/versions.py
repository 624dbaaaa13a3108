"""Versions of user files: which runs used one that a later run has replaced."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from datetime import datetime

from driftline.record.card import Card
from driftline.record.run import Run
from driftline.store.last_used import last_used
from driftline.store.run_names import format_time, short_hash


def superseded(runs: Iterable[Run], comparison_key: Callable[[Card], Hashable]) -> dict[str, dict[str, str]]:
    """Return by run key the files that a comparable run used in a newer version: short hash and date of each.

    The age of a version is that of its last use, by a new or a reused run. `comparison_key`: what comparable cards
    share.
    """
    runs = [run for run in runs if run.common.user_files]
    latest: dict[tuple[Hashable, str], dict[str, datetime]] = defaultdict(dict)
    for run in runs:
        for name, content in run.common.user_files.items():
            versions = latest[comparison_key(run.common), name]
            used = last_used(run, name)
            versions[content] = max(used, versions.get(content, used))
    replaced = {}
    for run in runs:
        older = {}
        for name, content in run.common.user_files.items():
            versions = latest[comparison_key(run.common), name]
            if content != max(versions, key=lambda version: (versions[version], version)):
                older[name] = f"{short_hash(content)} ({format_time(versions[content])})"
        if older:
            replaced[run.key] = older
    return replaced
