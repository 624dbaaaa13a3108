"""Stages in this process, one after another."""

from __future__ import annotations

from driftline.engine.build import DatasetCache
from driftline.engine.executors.base import run_stage
from driftline.engine.executors.process import one_thread
from driftline.engine.stages import Stage, StageContext
from driftline.store.store import Store
from driftline.types import OnProgress


class SerialExecutor:
    """Computes stages in this process; none is tried again."""

    retries = 0
    broken = None
    in_process = True

    def __init__(self, store: Store, datasets: DatasetCache) -> None:
        self._store = store
        self._datasets = datasets

    def submit(self, stage: Stage, on_progress: OnProgress) -> bool:
        """Compute a stage in the calling thread."""
        with one_thread():
            return run_stage(stage, StageContext(self._store, self._datasets, on_progress=on_progress))
