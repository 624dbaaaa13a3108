"""A cache of tables of many runs: reading the scores of thousands of runs takes a minute."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress

from driftline.errors import DamagedFile
from driftline.io.checksums import read_checked, write_checked
from driftline.record.run import Record
from driftline.spec.keys import sources_hash
from driftline.store.store import Store

MIN_RUNS = 200
FOLDER = "tables"
NOTES = ("used", "labels")


def cached_results(record: Record, store: Store) -> str:
    """Return the tables of results as Markdown; those of many runs are written to the store and read again.

    The key of the cache covers the runs, the uses of user files, the labels of methods and the source code.
    """
    if len(record) < MIN_RUNS:
        return _results(record)
    scores = [(run.folder.name, os.stat(run.folder / "scores.parquet")) for run in record.runs]
    notes = [(path.name, path.stat()) for name in NOTES for path in sorted(store.folder.glob(f"{name}/[!.]*"))]
    content = [sources_hash(), *(f"{name} {stat.st_mtime_ns} {stat.st_size}" for name, stat in (*scores, *notes))]
    path = store.folder / FOLDER / hashlib.sha256("\n".join(content).encode()).hexdigest()[:16]
    with suppress(DamagedFile):
        return str(read_checked(path)["text"])
    text = _results(record)
    write_checked(path, {"text": text})
    return text


def _results(record: Record) -> str:
    from driftline.report.tables.render import render  # imports scipy, which a cached table does not need
    from driftline.report.tables.result import result_tables

    return render(result_tables(record), "md")
