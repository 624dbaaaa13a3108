"""A stage on a machine that shares no disk with the driver: all it needs comes with it, and its result goes back.

It is computed in a store of its own, in the sweep's folder on that machine. The dataset's arrays stay where Ray keeps
them, once for all workers of a machine.
"""

from __future__ import annotations

import faulthandler
import json
import os
import platform
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from driftline import handed
from driftline.atomic import write_bytes
from driftline.engine import card, logs, parcels, stages
from driftline.engine.execute import StageFailed, attempt, one_thread
from driftline.engine.ray_room import room
from driftline.engine.stages import Stage
from driftline.engine.worker import keep_memory
from driftline.errors import DiskError
from driftline.store import Store
from driftline.version import __version__

EVERY = 0.5  # seconds between two reports of progress
LONGEST = 2**20  # bytes of a log that are kept


@dataclass(frozen=True)
class Work:
    """A stage with all it needs; what is large is a reference to Ray's object store."""

    stage: Stage
    data: tuple[str, str]
    """The dataset's name and its settings."""
    fingerprint: str
    dataset: Any
    needs: dict[str, Any]
    """Results of other stages, by their keys."""
    files: dict[str, tuple[str, str, Any]]
    """By the name a user gave: a hash of the content, the file's own name, and the content."""
    line: Any
    """The actor that is told about progress."""
    sweep: str
    """The name of the folder on each machine in which its tasks work."""
    timeout: float | None
    version: str = __version__
    sources: str = field(default_factory=card.sources_hash)


@dataclass(frozen=True)
class Outcome:
    """How a stage ended; the pieces of its result follow."""

    node: str
    log: str = ""
    reason: str = ""
    traceback: str = ""
    again: bool = False
    """Whether another attempt, on another machine, may go better."""


def compute(work: Work) -> Iterator[Outcome | parcels.Piece]:
    """Compute a stage: how it went, then the pieces of its result."""
    node = platform.node()
    if (work.version, work.sources) != (__version__, card.sources_hash()):
        yield Outcome(node, reason=f"node {node} has another driftline than the driver: install {work.version} there")
        return
    keep_memory()
    with tempfile.TemporaryDirectory(dir=room(work.sweep)) as scratch:
        store = Store(Path(scratch))
        with logs.kept(store, work.stage.key):
            trouble = _attempt(work, store)
        yield Outcome(node, _log(store, work.stage.key), **trouble)
        if not trouble:
            yield from parcels.pieces(parcels.result_files(work.stage, store))


def _attempt(work: Work, store: Store) -> dict[str, Any]:
    """Nothing if the result is in the store, else what an Outcome says of it."""
    try:
        _unpack(work, store)
        with one_thread(), _telling(work, store) as tell:
            attempt(work.stage, store, None, tell)
    except StageFailed:
        (failure,) = (json.loads(path.read_bytes()) for path in (store.folder / "failed").glob("*.json"))
        return {"reason": failure["reason"], "traceback": failure["traceback"]}
    except DiskError as error:  # a disk of this machine; another may have room
        return {"reason": f"on node {platform.node()}: {error}", "again": True}
    return {}


def _log(store: Store, key: str) -> str:
    """What the stage printed, or the end of it."""
    path = store.log_path(key)
    return path.read_bytes()[-LONGEST:].decode(errors="replace") if path.exists() else ""


def _unpack(work: Work, store: Store) -> None:
    """Put what came with the stage where it will be looked for."""
    import ray

    handed.instead({name: _copy(room(work.sweep), *file) for name, file in work.files.items()})
    known = stages.lent.get(work.data)
    if known is None or known.fingerprint != work.fingerprint:
        if len(stages.lent) > 1:
            stages.lent.clear()
        stages.lent[work.data] = ray.get(work.dataset)
        stages.dataset_of.cache_clear()
    for key, content in work.needs.items():
        write_bytes(store.stage_path(key), ray.get(content))


def _copy(folder: Path, digest: str, name: str, content: Any) -> Path:
    """Where a copy of a file or folder lies, written once on each machine."""
    import ray

    place = folder / digest
    if not place.exists():
        beside = place.with_name(f"{digest}.{os.getpid()}")
        parcels.unpacked(ray.get(content), beside)
        with suppress(OSError):  # another process was faster
            beside.rename(place)
        shutil.rmtree(beside, ignore_errors=True)
    return place / name


@contextmanager
def _telling(work: Work, store: Store) -> Iterator[stages.Report]:
    """Tell the driver about progress and, when the time is up, where the stage is and what it has printed."""
    last, key = -EVERY, work.stage.key

    def time_is_up() -> None:
        faulthandler.dump_traceback(2)
        work.line.last_words.remote(key, _log(store, key))

    clock = threading.Timer(work.timeout or 0, time_is_up)
    clock.daemon = True

    def tell(done: int, of: int) -> None:
        nonlocal last
        if work.timeout and clock.ident is None:
            clock.start()
        if time.monotonic() - last >= EVERY or done == of:
            last = time.monotonic()
            work.line.tell.remote(key, done, of)

    try:
        yield tell
    finally:
        clock.cancel()
