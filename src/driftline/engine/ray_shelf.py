"""What tasks on Ray need, put into its object store by the driver."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from pathlib import Path
from typing import Any

from driftline.engine import parcels
from driftline.engine.elsewhere import Work
from driftline.engine.stages import Stage, dataset_of
from driftline.jobs import Job
from driftline.store import Store

HELD = 2**30
"""The driver keeps so many bytes of finished stages in Ray's object store, for tasks that need the same."""


class Shelf:
    """What tasks need, put into Ray's object store by the driver and once; machines fetch it when first needed."""

    def __init__(self, ray: Any, sweep: str, timeout: float | None) -> None:
        self._ray = ray
        self._sweep = sweep
        self._timeout = timeout
        self._lock = threading.Lock()
        self._needs: OrderedDict[str, tuple[Any, int]] = OrderedDict()
        self._files: dict[tuple[Any, ...], tuple[str, str, Any] | None] = {}
        self._datasets: OrderedDict[tuple[str, str], tuple[str, Any]] = OrderedDict()

    def work(self, stage: Stage, store: Store, where: Path | None, line: Any) -> Work:
        """A stage with all it needs. `line`: whom it tells about its progress."""
        job = Job.model_validate(stage.job)
        data = (job.data.name, json.dumps(job.data.settings, sort_keys=True))
        with self._lock:
            fingerprint, dataset = self._dataset(data, where)
            needs = {key: self._need(key, store) for key in stage.needs if store.stage_path(key).exists()}
            files = {name: self._file(path) for name, path in parcels.named_files(job).items()}
            self._let_go()
        light = {name: file for name, file in files.items() if file is not None}
        return Work(stage, data, fingerprint, dataset, needs, light, line, self._sweep, self._timeout)

    def _dataset(self, data: tuple[str, str], where: Path | None) -> tuple[str, Any]:
        if data not in self._datasets:
            if len(self._datasets) > 1:
                self._datasets.popitem(last=False)
            found = dataset_of(*data, where)
            self._datasets[data] = (found.fingerprint, self._ray.put(found))
        return self._datasets[data]

    def _need(self, key: str, store: Store) -> Any:
        if key not in self._needs:
            content = store.stage_path(key).read_bytes()
            self._needs[key] = (self._ray.put(content), len(content))
        self._needs.move_to_end(key)
        return self._needs[key][0]

    def _file(self, path: Path) -> tuple[str, str, Any] | None:
        state = parcels.state_of(path)
        if state not in self._files:
            files = parcels.packed(path)
            self._files[state] = (parcels.digest_of(files), path.name, self._ray.put(files)) if files else None
        return self._files[state]

    def _let_go(self) -> None:
        """Forget what was needed longest ago; tasks under way keep theirs."""
        while sum(size for _, size in self._needs.values()) > HELD and len(self._needs) > 1:
            self._needs.popitem(last=False)
