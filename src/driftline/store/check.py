"""Check a store: read every run, stage and failure, and verify its checksum."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from driftline.errors import DamagedFile
from driftline.io import serialization
from driftline.io.checksums import read_checked
from driftline.record.run import Run
from driftline.store.store import Store

JSON_FOLDERS = ("failed", "labels", "matrices", "used")


@dataclass(frozen=True)
class CheckResult:
    """The result of a check."""

    files: int
    """Runs, stages and notes that were verified."""
    damage: dict[str, str]
    """The reason by path in the store."""


def check(store: Store) -> CheckResult:
    """Verify everything in a store; of a remote store, the remote files and not the local copy."""
    if store.remote is not None:
        store.remote.download(store.remote.finished(), force=True)
    names = sorted(_names(store))
    reasons = ((name, _damage(store.folder / name)) for name in names)
    return CheckResult(len(names), {name: reason for name, reason in reasons if reason})


def repair(store: Store, result: CheckResult) -> None:
    """Remove what is damaged, so that the next `driftline run` computes it again if it is needed."""
    for name in result.damage:
        remove(store, name)


def remove(store: Store, name: str) -> None:
    """Remove a run, a stage or a note, here and in a remote store; a run's card goes first."""
    path = store.folder / name
    with store.lock(path.name.split(".")[0]):
        if store.remote is not None:
            store.remote.remove(name)
        if path.is_dir():
            (path / "card.json").unlink(missing_ok=True)
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _names(store: Store) -> Iterator[str]:
    for folder in ("runs", "stages", *JSON_FOLDERS):
        yield from (f"{folder}/{path.name}" for path in (store.folder / folder).glob("[!.]*"))


def _damage(path: Path) -> str:
    """Return why a run, a stage or a note cannot be used; an empty text if it can."""
    try:
        if path.parent.name == "runs":
            Run(path).verify()
        elif path.parent.name == "stages":
            serialization.verify(path)
        else:
            read_checked(path)
    except DamagedFile as damage:
        inside = "" if damage.path == path else f"{damage.path.name}: "
        return f"{inside}{damage.reason}"
    return ""
