"""Submit stages as tasks to a Ray cluster.

The driver alone writes to the store. It holds a stage's lock while its task runs, puts what the task needs into Ray's
object store, and receives the result in chunks. The driver retries, not Ray, so that it knows the reasons.
"""

from __future__ import annotations

import math
import os
import signal
import socket
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import ModuleType
from typing import TYPE_CHECKING, Any

from driftline.engine.build import DatasetCache
from driftline.engine.executors import logs
from driftline.engine.executors.base import Executor, Interrupted, StageFailed, WorkerLost, record_failure, run_stage
from driftline.engine.ray.payload import PayloadCache
from driftline.engine.ray.progress import ActiveTask, ProgressMonitor, report_interval
from driftline.engine.ray.scratch import remove_all
from driftline.engine.ray.task import TaskResult, run_task
from driftline.engine.ray.transfer import IncomingResult
from driftline.engine.stages import Stage, StageContext
from driftline.errors import ClusterLost, MissingExtra, UserError
from driftline.io.atomic import write_bytes
from driftline.store.store import Store
from driftline.types import OnProgress

if TYPE_CHECKING:
    from driftline.engine.executors.config import ExecutorConfig

CONNECT_SECONDS = 10.0  # seconds that a cluster has to answer


@contextmanager
def ray_executors(config: ExecutorConfig, store: Store, datasets: DatasetCache) -> Iterator[list[Executor]]:
    """Connect to a Ray cluster; one is started, and stopped, if no address is given."""
    with connect(config) as ray:
        tasks = _max_tasks(ray, config)
        monitor, sweep = ProgressMonitor(ray, config.timeout), uuid.uuid4().hex
        payloads = PayloadCache(ray, sweep, config.timeout, report_interval(tasks), store, datasets)
        resources = {"num_cpus": config.cpus, "num_gpus": config.gpus, "memory": config.memory or 0}
        resources = {name: amount for name, amount in resources.items() if amount}
        # With GPUs, Ray ends a worker after a task, if they are named here: CUDA would stay on the first one's GPU.
        task = ray.remote(max_retries=0, **resources)(run_task)
        try:
            context = StageContext(store, datasets)
            executor = RayExecutor(ray, task, payloads, monitor, context, config.retries)
            yield [executor] * tasks
        finally:
            if monitor.lost is None:  # else the cluster does not answer
                monitor.close()
                remove_all(ray, sweep)


@contextmanager
def connect(config: ExecutorConfig) -> Iterator[ModuleType]:
    """Connect to the cluster of a configuration, and check that it has what is asked for; yield the module ray."""
    ray = _import_ray()
    with _connected(ray, config):
        _check_resources(ray, config)
        yield ray


def _import_ray() -> ModuleType:
    try:
        import ray
    except ModuleNotFoundError:
        raise MissingExtra("--engine ray", "ray") from None
    return ray


@contextmanager
def _connected(ray: ModuleType, config: ExecutorConfig) -> Iterator[None]:
    if ray.is_initialized():  # a program's own connection is used and left as it is
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    quiet = {"log_to_driver": False, "logging_level": "error", "include_dashboard": False}
    size = {"num_cpus": math.ceil(config.jobs * config.cpus)} if config.jobs else {}
    try:
        if config.address:
            _check_answers(config.address)
            quiet.pop("include_dashboard")
            ray.init(address=config.address, **quiet)
        else:
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # our own cluster sends no usage statistics
            ray.init(address="local", **size, **quiet)
    except (OSError, RuntimeError, ValueError) as error:
        where = f"at {config.address}" if config.address else "on this machine"
        raise UserError(f"no Ray cluster can be used {where}: {_last_line(error)}") from error
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, before)  # Ray takes it; ours ends tasks and says how to resume
    try:
        yield
    except ClusterLost:  # Ray may wait for the head for a minute, and then end this process
        ending = threading.Thread(target=ray.shutdown, daemon=True)
        ending.start()
        ending.join(CONNECT_SECONDS)
        raise
    except BaseException:
        ray.shutdown()
        raise
    ray.shutdown()


def _check_answers(address: str) -> None:
    """Refuse a HOST:PORT that does not answer: Ray itself would try for many minutes."""
    host, _, port = address.rpartition(":")
    if port.isdigit() and "/" not in host:
        socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS).close()


def _check_resources(ray: ModuleType, config: ExecutorConfig) -> None:
    """Refuse a request that no machine can meet now; its tasks would wait for ever."""
    requested = _requested(config)
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    if any(all(node.get(name, 0) >= amount for name, amount in requested.items()) for node in nodes):
        return
    best = {name: max((node.get(name, 0) for node in nodes), default=0) for name in requested}
    have = f"{best['CPU']:g} CPUs, {best['GPU']:g} GPUs and {best['memory'] / 2**30:.1f} GiB"
    raise UserError(
        f"no machine of the Ray cluster has the requested --cpus, --gpus and --memory; the largest has {have}"
    )


def _requested(config: ExecutorConfig) -> dict[str, float]:
    return {"CPU": config.cpus, "GPU": config.gpus, "memory": config.memory or 0}


def _max_tasks(ray: ModuleType, config: ExecutorConfig) -> int:
    """Return the number of parallel stages: by default as many as fit."""
    if config.jobs:
        return config.jobs
    resources = ray.cluster_resources()
    return max(1, min(int(resources.get(name, 0) // amount) for name, amount in _requested(config).items() if amount))


@dataclass
class RayExecutor:
    """Computes stages as Ray tasks. It has no state of its own, so all threads share one."""

    ray: ModuleType
    task: Any
    payloads: PayloadCache
    monitor: ProgressMonitor
    context: StageContext
    retries: int
    in_process = False

    @property
    def broken(self) -> Exception | None:
        """The reason why the cluster can no longer be used; None if it can."""
        return self.monitor.lost

    def submit(self, stage: Stage, on_progress: OnProgress) -> bool:
        """Send a stage to the cluster and wait for its result."""
        store = self.context.store
        if stage.is_local(store):
            return run_stage(stage, replace(self.context, on_progress=on_progress))
        with store.lock(stage.key):
            if stage.is_done(store):
                store.remove_work_folder(stage.key)
                return False
            if self.monitor.closing:  # while it waited for the lock
                raise Interrupted
            task = self._started(stage)
            incoming = IncomingResult(stage, store)
            with self.monitor.watching(stage, on_progress, task) as active:
                try:
                    result = self._received(task, incoming, stage)
                except self.ray.exceptions.RayError as error:
                    incoming.discard()
                    raise self._lost(active, error) from error
            if result.retryable:
                raise WorkerLost(result.reason)
            if result.reason:
                raise self._failed(stage, result.reason, result.traceback)
            incoming.commit(result.node)
            store.clear_failure(stage.key)
            return True

    def _started(self, stage: Stage) -> Any:
        payload = self.payloads.payload(stage, self.monitor.actor)
        return self.task.options(name=stage.title).remote(payload)

    def _received(self, task: Any, incoming: IncomingResult, stage: Stage) -> TaskResult:
        """Return how a stage ended, once its whole result is here."""
        result: TaskResult = self.ray.get(next(task))
        if result.log:
            write_bytes(self.context.store.log_path(stage.key), result.log.encode())
        for chunk in task:
            incoming.add(self.ray.get(chunk))
        return result

    def _lost(self, active: ActiveTask, error: Exception) -> Exception:
        """Return what the loss of a task means for its stage."""
        kinds, store = self.ray.exceptions, self.context.store
        if self.monitor.closing:
            return Interrupted()
        if active.overdue:
            if active.final_log:
                write_bytes(store.log_path(active.stage.key), active.final_log.encode())
            reason = f"it took longer than the {self.monitor.timeout:g} s that --timeout allows"
            tail = logs.tail(store, active.stage.key) if active.final_log else ""  # else it is of an earlier attempt
            return self._failed(active.stage, reason, tail)
        if isinstance(error, kinds.OutOfMemoryError):
            return WorkerLost("its machine ran out of memory: ask for more with --memory, or run fewer with --jobs")
        if isinstance(error, kinds.NodeDiedError | kinds.ObjectLostError):
            return WorkerLost("its machine was lost")
        if isinstance(error, kinds.WorkerCrashedError):
            return WorkerLost("its worker process died, or its machine was lost")
        return WorkerLost(f"{type(error).__name__}: {_last_line(error)}")

    def _failed(self, stage: Stage, reason: str, details: str = "") -> StageFailed:
        record_failure(stage, self.context.store, reason, details)
        return StageFailed(reason)


def _last_line(error: Exception) -> str:
    return next((line.strip() for line in reversed(str(error).splitlines()) if line.strip()), type(error).__name__)
