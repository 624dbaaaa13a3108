"""The index of a store: cards and scores of its runs in a few files, so that no command reads thousands of small ones.

The runs are the truth. A row of the index holds for as long as the names, sizes and times of the run's files are those
that it was made from, as in Git's index; other rows are ignored. So files of the index may be lost, damaged or added at
any time by any process. A file's name is the number of its format and the hash of its content.
"""

from __future__ import annotations

import hashlib
import os
import time
import uuid
from collections import defaultdict
from collections.abc import Hashable, Iterator, Set
from contextlib import suppress
from functools import cached_property
from pathlib import Path

import pyarrow as pa

from driftline.errors import DamagedFile, DiskError
from driftline.io.atomic import write_bytes
from driftline.record.index_part import FORMAT, IndexEntry, IndexPart, columns_of, part_name, read_run, to_parquet
from driftline.record.run import Run

FOLDER = "index"
SETTLED = 2.0  # seconds: a younger file may change again without a change of its time, which has the clock's resolution
MAX_ROWS = 8192  # runs in a part: a store with more has several
ATTEMPTS = 3  # to list the parts, which another process may be merging


class RunIndex:
    """The runs of a store, read from its index where that is up to date."""

    def __init__(self, folder: Path) -> None:
        """`folder`: that of the store."""
        self._folder = folder / FOLDER
        self._runs = folder / "runs"
        self._new: dict[str, pa.Table] = {}
        """Rows that are not written yet, by signature."""

    def runs(self, complete: bool = False) -> list[Run]:
        """Return all runs, sorted by name, and bring the index up to date; a damaged run has no row in it.

        `complete`: verify all files of a run that the index does not know, not only its card and scores.
        """
        try:
            with os.scandir(self._runs) as folders:
                names = sorted(entry.name for entry in folders if entry.name[0] != "." and entry.is_dir())
        except (FileNotFoundError, NotADirectoryError):
            return []
        signatures = {name: self._refresh(name, complete)[0] for name in names}
        self.save(set(signatures.values()))
        return [Run(self._runs / name, self._known.get(signature)) for name, signature in signatures.items()]

    def run(self, name: str) -> Run:
        """Return the run of this name, which may be missing or damaged."""
        return Run(self._runs / name, self._known.get(self._refresh(name, complete=False)[0]))

    def score_revisions(self, name: str) -> dict[str, int] | None:
        """Return the revisions of a run's scores; None if it is missing or one of its files is damaged."""
        signature, intact = self._refresh(name, complete=True)
        return Run(self._runs / name, self._known.get(signature)).common.code.score_revisions if intact else None

    def _refresh(self, name: str, complete: bool) -> tuple[str, bool]:
        """Read a run if the index does not know it; return its signature, and whether all its files are verified."""
        folder = os.path.join(self._runs, name)
        signature, changed_at = _signature(folder)
        if not signature:
            return "", False
        known, new = self._known.get(signature), self._new.get(signature)
        intact = bool(known and known["intact"]) or (new is not None and new["intact"][0].as_py())
        if intact or ((known or new is not None) and not complete):
            return signature, intact
        try:
            row = read_run(Run(Path(folder)), signature, complete)
        except DamagedFile:
            return signature, False
        if signature == _signature(folder)[0] and changed_at < time.time() + self._clock_difference - SETTLED:
            self._new[signature] = row
        if len(self._new) >= MAX_ROWS:
            self.save()
        return signature, complete

    @cached_property
    def _parts(self) -> list[IndexPart]:
        for _ in range(ATTEMPTS):
            parts, is_complete = [], True
            for path in sorted(filter(Path.is_file, self._folder.glob(f"{FORMAT}-*.parquet"))):
                try:
                    parts.append(IndexPart.open(path))
                except FileNotFoundError:  # another process has just merged it into a new one
                    is_complete = False
                except (DamagedFile, OSError, pa.ArrowException):
                    continue
            if is_complete:
                break
        return parts

    @cached_property
    def _clock_difference(self) -> float:
        """How far the clock of the disk, which may be another machine's, is ahead of ours, in seconds."""
        path = self._folder.with_name(f".clock.{uuid.uuid4().hex[:8]}")
        try:
            path.touch()
            return path.stat().st_mtime - time.time()
        except OSError:  # nothing can be written, so that no row is kept
            return 0.0
        finally:
            with suppress(OSError):
                path.unlink()

    @cached_property
    def _known(self) -> dict[str, IndexEntry]:
        """The rows of all parts by signature."""
        known: dict[str, IndexEntry] = {}
        for part in self._parts:
            known.update(self._entries(part, known))
        return known

    def _entries(self, part: IndexPart, known: dict[str, IndexEntry]) -> Iterator[tuple[str, IndexEntry]]:
        for row, (signature, intact) in enumerate(zip(part.column("signature"), part.column("intact"), strict=True)):
            if intact or signature not in known:
                yield signature, IndexEntry(part, row)

    def save(self, live: Set[str] | None = None) -> None:
        """Write the new rows, together with those of smaller parts; errors of the disk are ignored.

        `live`: the signatures of all runs, if they are known. Parts that mostly hold other rows are written again.
        """
        if not self._new and live is None:
            return
        alike: dict[Hashable, dict[str, pa.Table]] = defaultdict(dict)
        for signature, row in self._new.items():
            alike[columns_of(row.schema)][signature] = row
        for part in self._parts:
            if live is not None and 2 * sum(map(live.__contains__, part.column("signature"))) < len(part):
                alike[columns_of(part.schema)] |= {}
        self._new = {}
        for columns, rows in alike.items():
            self._write(rows, [part for part in self._parts if columns_of(part.schema) == columns], live)

    def _write(self, rows: dict[str, pa.Table], parts: list[IndexPart], live: Set[str] | None) -> None:
        """Write one part of new rows and of those parts that are not larger or mostly out of date."""
        tables, count, merged = list(rows.values()), len(rows), []
        for part in sorted(parts, key=len):
            current = [
                row
                for row, signature in enumerate(part.column("signature"))
                if signature not in rows and self._known[signature].part is part and (live is None or signature in live)
            ]
            if 2 * len(current) >= len(part) and (len(part) > count or count + len(current) > MAX_ROWS):
                continue
            merged.append(part)
            count += len(current)
            tables.append(part.rows(current))
        if count:
            self._add(to_parquet(tables))
        self._parts[:] = [part for part in self._parts if part not in merged]
        for part in merged:
            with suppress(OSError):  # Windows does not remove what another process has open
                part.path.unlink()

    def _add(self, content: bytes) -> None:
        path = self._folder / part_name(content)
        try:
            write_bytes(path, content)
            part = IndexPart.open(path)
        except (DiskError, DamagedFile, OSError):  # it serves this process
            part = IndexPart.of(path, pa.BufferReader(content))
        self._parts.append(part)
        self._known.update(self._entries(part, {}))


def _signature(folder: str) -> tuple[str, float]:
    """Return a hash of names, sizes and times of a folder's files, and when the latest changed; "" if it is missing."""
    try:
        with os.scandir(folder) as entries:
            stats = sorted((entry.name, entry.stat()) for entry in entries)
    except OSError:
        return "", 0.0
    text = " ".join(f"{name} {stat.st_size} {stat.st_mtime_ns} {stat.st_ctime_ns}" for name, stat in stats)
    latest = max((max(stat.st_mtime, stat.st_ctime) for _, stat in stats), default=0.0)
    name = os.path.basename(folder)
    return hashlib.sha256(os.fsencode(f"{name} {text}")).hexdigest()[:32], latest


def is_outdated(name: str) -> bool:
    """Return whether a file of the index is of an older format; the first had no number.

    >>> is_outdated("1-ab.parquet"), is_outdated("ab.parquet"), is_outdated(f"{FORMAT}-ab.parquet")
    (True, True, False)
    """
    number, dash, _ = name.partition("-")
    return not dash or (number.isdecimal() and int(number) < FORMAT)
