"""Inputs of Ray tasks: the driver puts each into Ray's object store once."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from driftline.engine.build import DatasetCache, dataset_key
from driftline.engine.ray import transfer
from driftline.engine.stages import Stage
from driftline.io import user_objects
from driftline.spec.files import named_files
from driftline.spec.keys import sources_hash
from driftline.spec.settings import Choice
from driftline.store.store import Store
from driftline.version import __version__

MAX_CACHED = 2**30
"""Bytes of finished stages that the driver keeps in Ray's object store for further tasks."""
DATASETS = 2


@dataclass(frozen=True)
class Payload:
    """A stage with its inputs; what is large is a reference to Ray's object store."""

    stage: Stage
    fingerprint: str
    dataset: Any
    needs: dict[str, Any]
    """Results of other stages by key."""
    files: dict[str, tuple[str, str, Any]]
    """By the name a user gave: a hash of the content, the file's own name, and the content."""
    objects: bytes
    """The user's objects, pickled."""
    progress: Any
    """The actor to which progress is reported."""
    sweep: str
    """The name of the scratch folder on each machine."""
    timeout: float | None
    report_interval: float
    """Seconds between two reports of progress."""
    version: str = __version__
    sources: str = field(default_factory=sources_hash)


class PayloadCache:
    """Makes payloads; machines fetch their parts when first needed."""

    def __init__(
        self,
        ray: ModuleType,
        sweep: str,
        timeout: float | None,
        report_interval: float,
        store: Store,
        datasets: DatasetCache,
    ) -> None:
        self._ray = ray
        self._sweep = sweep
        self._limits = (timeout, report_interval)
        self._store = store
        self._cache = datasets
        self._objects = user_objects.dumps(without="dataset")  # which is sent as it was read
        self._lock = threading.Lock()
        self._results: OrderedDict[str, tuple[Any, int]] = OrderedDict()
        self._files: dict[tuple[Any, ...], tuple[str, str, Any] | None] = {}
        self._datasets: OrderedDict[tuple[str, str], tuple[str, Any]] = OrderedDict()

    def payload(self, stage: Stage, progress: object) -> Payload:
        """Return a stage with its inputs; `progress`: the actor to which it reports."""
        with self._lock:
            fingerprint, dataset = self._dataset(stage.job.data)
            needs = {key: self._result(key) for key in stage.needs if self._store.stage_path(key).exists()}
            files = {name: self._file(path) for name, path in named_files(stage.job).items()}
            self._evict()
        sent = {name: file for name, file in files.items() if file is not None}
        return Payload(stage, fingerprint, dataset, needs, sent, self._objects, progress, self._sweep, *self._limits)

    def _dataset(self, choice: Choice) -> tuple[str, Any]:
        key = dataset_key(choice)
        if key not in self._datasets:
            if len(self._datasets) >= DATASETS:
                self._datasets.popitem(last=False)
            dataset = self._cache.load(choice)
            self._datasets[key] = (dataset.fingerprint, self._ray.put(dataset))
        return self._datasets[key]

    def _result(self, key: str) -> Any:
        if key not in self._results:
            content = self._store.stage_path(key).read_bytes()
            self._results[key] = (self._ray.put(content), len(content))
        self._results.move_to_end(key)
        return self._results[key][0]

    def _file(self, path: Path) -> tuple[str, str, Any] | None:
        state = transfer.file_state(path)
        if state not in self._files:
            files = transfer.read_tree(path)
            self._files[state] = (transfer.tree_digest(files), path.name, self._ray.put(files)) if files else None
        return self._files[state]

    def _evict(self) -> None:
        """Forget what was needed longest ago; tasks in progress keep theirs."""
        while sum(size for _, size in self._results.values()) > MAX_CACHED and len(self._results) > 1:
            self._results.popitem(last=False)
