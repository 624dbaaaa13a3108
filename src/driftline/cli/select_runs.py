"""Selection of finished runs: by key, by folder, or all of the store."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from driftline.errors import UserError

if TYPE_CHECKING:
    from driftline.record.run import Record


def select_runs(names: list[str] | None, runs: str | None, tables: tuple[str, ...] | None = None) -> Record:
    """Return the runs with these keys, and all runs of these folders; by default, all runs of the store.

    Only `tables` are verified.
    """
    from driftline.record.run import Record
    from driftline.store.remote import is_url
    from driftline.store.store import Store

    stores = [name for name in names or [] if is_url(name) or os.path.exists(Path(name) / "store.json")]
    keys = [name for name in names or [] if name not in stores]
    selected = [run for name in stores for run in Store.open(name).record(tables=tables).runs]
    store = Store.open(runs or (stores[0] if stores else None))
    selected += [store.find(key) for key in keys] if names else store.record(tables=tables).runs
    if not selected:
        raise UserError(
            f"no finished run in {store.name}: make one with `driftline run`, or name the folder with --runs"
        )
    return Record(selected)
