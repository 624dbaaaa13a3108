"""Tasks of an audit: fits and replays with keys, computed by any engine and kept in a store until they are all done.

A task's result is a file of a store (`stages/KEY.safetensors`) under a key that covers the table, the options, the
model, the code and the task, as for the stages of a run. So an audit that was killed goes on where it stopped. Workers
are forked and share the table with this process; on a Ray cluster the table is sent once per machine.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np
import pandas as pd

from driftline import parallel
from driftline.engine.executors.config import ExecutorConfig
from driftline.errors import DamagedFile, DiskError, UserError
from driftline.io import serialization
from driftline.spec.keys import stable_hash
from driftline.store.store import Store

Key = tuple[Any, ...]
WORTH_KEEPING = 0.5  # seconds from which a result is kept in the scratch store
STALE = 7 * 24 * 3600  # seconds after which the results of a killed audit are removed from the scratch store
PACKAGES = ("driftline.auditing.", "driftline.types")  # whose classes may be read from a store


@dataclass(frozen=True, eq=False)
class Task:
    """An independent unit of work."""

    key: Key
    description: str
    compute: Callable[[], Any]


@dataclass(frozen=True)
class Kept:
    """Results of tasks in a store."""

    store: Store
    audit: str
    """Hash of everything but the task that decides a result."""
    scratch: bool = False
    """Whether results are removed once the audit has ended, and only those that took long are written."""

    def load(self, task: Task) -> Any:
        """Return the result of a task; None if it is not kept, or damaged."""
        with suppress(DamagedFile):
            return decode(serialization.load(self._path(task)))
        return None

    def compute(self, task: Task) -> Any:
        """Return the result of a task, and keep it."""
        began = time.perf_counter()
        result = task.compute()
        if not self.scratch or time.perf_counter() - began > WORTH_KEEPING:
            self.save(task, result)
        return result

    def save(self, task: Task, result: object) -> None:
        """Write a result; a full disk stops only an audit whose results were to be kept."""
        try:
            serialization.save(encode(result), self._path(task))
        except DiskError:
            if not self.scratch:
                raise

    def end(self, tasks: Sequence[Task]) -> None:
        """Remove the results from a scratch store."""
        for task in tasks if self.scratch else ():
            self._path(task).unlink(missing_ok=True)

    def _path(self, task: Task) -> Any:
        return self.store.stage_path(stable_hash({"audit": self.audit, "task": repr(task.key)}))


class TaskRunner:
    """Computes tasks that are not kept yet, in this process, in forked ones or on a Ray cluster."""

    def __init__(self, config: ExecutorConfig, kept: Kept | None = None) -> None:
        self.config, self.kept = config, kept
        self.done: list[Task] = []

    def run(self, tasks: Sequence[Task], on_done: Callable[[str, int], None]) -> list[Any]:
        """Return the results of tasks; `on_done` is called with a description and the number of finished tasks."""
        results = {} if self.kept is None else {task.key: self.kept.load(task) for task in tasks}
        results = {key: result for key, result in results.items() if result is not None}
        missing = [task for task in tasks if task.key not in results]
        if results:
            on_done(f"{len(results)} tasks were done by an earlier audit", len(results))
        found = self._compute(missing, lambda task, count: on_done(task.description, len(results) + count))
        results |= {task.key: result for task, result in zip(missing, found, strict=True)}
        self.done += tasks
        return [results[task.key] for task in tasks]

    def _compute(self, tasks: Sequence[Task], on_done: Callable[[Task, int], None]) -> list[Any]:
        if self.config.name == "ray":
            from driftline.engine.ray.map import ray_map

            save = (lambda task, result: None) if self.kept is None else self.kept.save
            return ray_map(_compute, tasks, self.config, on_done, save)
        compute = _compute if self.kept is None else self.kept.compute
        return parallel.map(compute, tasks, self.config.jobs or 1, on_done=on_done)

    def end(self) -> None:
        """Remove what was kept only until the audit has ended."""
        if self.kept is not None:
            self.kept.end(self.done)


def _compute(task: Task) -> Any:
    return task.compute()


def scratch_store() -> Store:
    """Return the store of unfinished audits in the user's cache folder, without results of long ago."""
    from platformdirs import user_cache_path

    store = Store(user_cache_path("driftline") / "audits")
    for path in (store.folder / "stages").glob("*"):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > STALE:
                path.unlink()
    return store


def encode(value: Any) -> Any:
    """Return a result as a tree that `io.serialization` saves."""
    if is_dataclass(value) and not isinstance(value, type):
        content = {f.name: encode(getattr(value, f.name)) for f in fields(value) if f.init}
        return _made(value, content)
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return _made(value, {name: encode(item) for name, item in value._asdict().items()})
    if isinstance(value, pd.Series):
        return {"values": encode(value.to_numpy()), "index": encode(value.index.to_numpy())}
    if isinstance(value, np.ndarray) and value.dtype.kind in "mM":
        return {"dates": value.dtype.str, "numbers": value.astype(np.int64)}
    if isinstance(value, dict):
        return {"items": [[encode(key), encode(item)] for key, item in value.items()]}
    if isinstance(value, list | tuple):
        return type(value)(map(encode, value))
    return value.item() if isinstance(value, np.generic) else value


def _made(value: object, content: dict[str, Any]) -> dict[str, Any]:
    return {"class": f"{type(value).__module__}:{type(value).__qualname__}", "fields": content}


def decode(tree: Any) -> Any:
    """Return the result that `encode` made a tree of; only classes of this package are made."""
    if isinstance(tree, list | tuple):
        return type(tree)(map(decode, tree))
    if not isinstance(tree, dict):
        return tree
    if "class" in tree:
        module, _, name = tree["class"].partition(":")
        if not module.startswith(PACKAGES):
            raise UserError(f"the store has a result of the unknown class {tree['class']}: delete the store")
        made: Any = getattr(importlib.import_module(module), name)
        return made(**{key: decode(value) for key, value in tree["fields"].items()})
    if "values" in tree:
        return pd.Series(decode(tree["values"]), index=decode(tree["index"]))
    if "dates" in tree:
        return tree["numbers"].astype(tree["dates"])
    return {decode(key): decode(value) for key, value in tree["items"]}
