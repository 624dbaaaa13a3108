"""Start the executors that a configuration asks for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from driftline.engine.build import DatasetCache
from driftline.engine.executors.base import Executor
from driftline.engine.executors.config import ExecutorConfig
from driftline.engine.executors.local import LocalExecutor
from driftline.engine.executors.serial import SerialExecutor
from driftline.store.store import Store


@contextmanager
def executors(config: ExecutorConfig, store: Store, datasets: DatasetCache) -> Iterator[list[Executor]]:
    """Start executors; they can serve several plans, since starting one takes seconds."""
    if config.name == "serial":
        yield [SerialExecutor(store, datasets)]
    elif config.name == "local":
        workers = [
            LocalExecutor(store, datasets.data_dir, config.timeout, config.retries, number)
            for number in range(config.jobs or 1)
        ]
        try:
            yield list(workers)
        finally:
            for worker in workers:
                worker.close()
    else:
        from driftline.engine.ray.executor import ray_executors

        with ray_executors(config, store, datasets) as tasks:
            yield tasks
