"""Label and group of a run's method, from the latest spec that includes the run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from driftline.errors import DamagedFile
from driftline.io.checksums import read_checked, write_checked
from driftline.record.run import Run
from driftline.store import check
from driftline.store.store import Store

FOLDER = "labels"


def write_labels(store: Store, labels: Mapping[str, tuple[str, str]]) -> None:
    """Write the label and the group of each run's method by the run's key; both may be empty."""
    existing = {path.stem for path in (store.folder / FOLDER).glob("[!.]*")}
    for key, (label, group) in labels.items():
        name = f"{FOLDER}/{key}.json"
        if not label and not group:
            if key in existing:
                check.remove(store, name)
        elif key not in existing or (label, group) != _read(store.folder / name):
            write_checked(store.folder / name, {"label": label, "group": group})
            if store.remote is not None:
                store.remote.upload(name)


def read_label(run: Run) -> tuple[str, str]:
    """Return the label and the group of a run's method; empty if no spec gave any."""
    return read_labels([run])[0]


def read_labels(runs: Iterable[Run]) -> list[tuple[str, str]]:
    """Return the labels of several runs, most of which have none."""
    labeled: dict[Path, set[str]] = {}
    found = []
    for run in runs:
        store = run.folder.parent.parent
        if store not in labeled:
            labeled[store] = {path.stem for path in (store / FOLDER).glob("[!.]*")}
        name = run.folder.name
        found.append(_read(store / FOLDER / f"{name}.json") if name in labeled[store] else ("", ""))
    return found


def _read(path: Path) -> tuple[str, str]:
    with suppress(DamagedFile):
        content = read_checked(path)
        return content["label"], content["group"]
    return "", ""
