"""A stage as a Ray task, on a machine that shares no disk with the driver.

The task computes the stage in a store of its own, in the sweep's scratch folder, and sends the result back. The
dataset's arrays stay where Ray keeps them, once for all workers of a machine.
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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from driftline.device import WORKER_VARIABLE
from driftline.engine.build import DatasetCache
from driftline.engine.executors import logs
from driftline.engine.executors.base import StageFailed, run_stage
from driftline.engine.executors.process import keep_freed_memory, one_thread
from driftline.engine.ray.payload import Payload
from driftline.engine.ray.scratch import scratch_dir
from driftline.engine.ray.transfer import Chunk, iter_chunks, write_tree
from driftline.engine.stages import StageContext
from driftline.errors import DiskError
from driftline.io import user_objects
from driftline.io.atomic import write_bytes
from driftline.spec.keys import sources_hash
from driftline.store.store import Store
from driftline.types import JsonObject, OnProgress
from driftline.version import __version__

MAX_LOG = 2**20  # bytes of a log that are sent

_datasets = DatasetCache()
"""The datasets that this Ray worker process was sent; tasks share nothing else."""


@dataclass(frozen=True)
class TaskResult:
    """The outcome of a stage; the chunks of its result follow."""

    node: str
    log: str = ""
    reason: str = ""
    traceback: str = ""
    retryable: bool = False
    """Whether another attempt, on another machine, may succeed."""


def run_task(payload: Payload) -> Iterator[TaskResult | Chunk]:
    """Compute a stage; yield how it ended, then the chunks of its result."""
    node = platform.node()
    if (payload.version, payload.sources) != (__version__, sources_hash()):
        reason = f"node {node} has another driftline than the driver: install {payload.version} there"
        yield TaskResult(node, reason=reason)
        return
    keep_freed_memory()
    _use_reserved_gpu()
    with tempfile.TemporaryDirectory(dir=scratch_dir(payload.sweep)) as scratch:
        store = Store(Path(scratch))
        with logs.redirect(store, payload.stage.key):
            failure = _compute(payload, store)
        yield TaskResult(node, _log(store, payload.stage.key), **failure)
        if not failure:
            yield from iter_chunks(payload.stage.result_files(store))


def _use_reserved_gpu() -> None:
    """Take the accelerator that Ray reserved. Of CUDA's, a worker sees no other; of other kinds it sees all."""
    import ray

    if reserved := ray.get_gpu_ids():
        os.environ[WORKER_VARIABLE] = str(reserved[0]) if str(reserved[0]).isdigit() else "0"


def _compute(payload: Payload, store: Store) -> JsonObject:
    """Compute the stage; return the fields of a TaskResult that say why it failed, if it did."""
    try:
        files = _unpack(payload, store)
        with one_thread(), _progress_reporter(payload, store) as on_progress:
            run_stage(payload.stage, StageContext(store, _datasets, files, on_progress))
    except StageFailed:
        (failure,) = (json.loads(path.read_bytes()) for path in (store.folder / "failed").glob("*.json"))
        return {"reason": failure["reason"], "traceback": failure["traceback"]}
    except DiskError as error:  # a disk of this machine; another may have space
        return {"reason": f"on node {platform.node()}: {error}", "retryable": True}
    return {}


def _log(store: Store, key: str) -> str:
    """Return what the stage printed, or the end of it."""
    path = store.log_path(key)
    return path.read_bytes()[-MAX_LOG:].decode(errors="replace") if path.exists() else ""


def _unpack(payload: Payload, store: Store) -> dict[str, Path]:
    """Write the stage's inputs to this machine; return the copies of the user's files."""
    import ray

    user_objects.receive(payload.objects)
    data = payload.stage.job.data
    if _datasets.fingerprint(data) != payload.fingerprint:
        _datasets.add(data, ray.get(payload.dataset))
    for key, content in payload.needs.items():
        write_bytes(store.stage_path(key), ray.get(content))
    folder = scratch_dir(payload.sweep)
    return {name: _copy(folder, *file) for name, file in payload.files.items()}


def _copy(folder: Path, digest: str, name: str, content: Any) -> Path:
    """Return the copy of a file or folder, written once on each machine."""
    import ray

    target = folder / digest
    if not target.exists():
        temporary = target.with_name(f"{digest}.{os.getpid()}")
        write_tree(ray.get(content), temporary)
        with suppress(OSError):  # another process was faster
            temporary.rename(target)
        shutil.rmtree(temporary, ignore_errors=True)
    return target / name


@contextmanager
def _progress_reporter(payload: Payload, store: Store) -> Iterator[OnProgress]:
    """Report progress to the driver and, when the time is up, the log and where the stage hangs."""
    last, key = -payload.report_interval, payload.stage.key

    def time_is_up() -> None:
        faulthandler.dump_traceback(2)
        payload.progress.final_log.remote(key, _log(store, key))

    clock = threading.Timer(payload.timeout or 0, time_is_up)
    clock.daemon = True

    def on_progress(done: int, total: int) -> None:
        nonlocal last
        if payload.timeout and clock.ident is None:
            clock.start()
        if time.monotonic() - last >= payload.report_interval or done == total:
            last = time.monotonic()
            payload.progress.report.remote(key, done, total)

    try:
        yield on_progress
    finally:
        clock.cancel()
