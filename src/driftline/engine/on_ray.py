"""Stages as tasks of a Ray cluster, whose machines need not share a disk.

The driver alone writes to the store. It holds a stage's lock while its task runs, puts what the task needs into Ray's
object store, and takes the result back piece by piece. Retries are the driver's too, not Ray's, so that it knows why.
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
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from driftline.atomic import write_bytes
from driftline.engine import elsewhere, logs, parcels
from driftline.engine.elsewhere import Outcome
from driftline.engine.execute import Executor, Interrupted, StageFailed, WorkerLost, attempt
from driftline.engine.ray_line import Call, Line
from driftline.engine.ray_room import clear_everywhere
from driftline.engine.ray_shelf import Shelf
from driftline.engine.stages import Report, Stage
from driftline.errors import ClusterLost, MissingExtra, UserError
from driftline.store import Store

if TYPE_CHECKING:
    from driftline.engine.engines import Engine

ANSWER = 10.0  # seconds that a cluster has to answer


@contextmanager
def on_ray(engine: Engine, store: Store, where: Path | None) -> Iterator[list[Executor]]:
    """Executors that hand stages to a Ray cluster; one is started, and ended, if no address is given."""
    ray = _ray()
    with _connected(ray, engine):
        _must_fit(ray, engine)
        line, sweep = Line(ray, engine.timeout), uuid.uuid4().hex
        shelf = Shelf(ray, sweep, engine.timeout)
        task = ray.remote(max_retries=0)(elsewhere.compute)
        wanted = {"num_cpus": engine.cpus, "num_gpus": engine.gpus, "memory": engine.memory}
        wanted = {name: amount for name, amount in wanted.items() if amount}
        try:
            hand = OnRay(ray, task, wanted, shelf, line, store, where, engine.retries)
            yield [hand] * _places(ray, engine)
        finally:
            if line.lost is None:  # else there is none to talk to
                line.close()
                clear_everywhere(ray, sweep)


def _ray() -> Any:
    try:
        import ray
    except ModuleNotFoundError:
        raise MissingExtra("--engine ray", "ray") from None
    return ray


@contextmanager
def _connected(ray: Any, engine: Engine) -> Iterator[None]:
    if ray.is_initialized():  # a program's own connection is used and left as it is
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    quiet = {"log_to_driver": False, "logging_level": "error", "include_dashboard": False}
    size = {"num_cpus": math.ceil(engine.jobs * engine.cpus)} if engine.jobs else {}
    try:
        if engine.address:
            _must_answer(engine.address)
            quiet.pop("include_dashboard")
            ray.init(address=engine.address, **quiet)
        else:
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # a cluster of ours tells nobody about its use
            ray.init(address="local", **size, **quiet)
    except (OSError, RuntimeError, ValueError) as error:
        where = f"at {engine.address}" if engine.address else "on this machine"
        raise UserError(f"no Ray cluster can be used {where}: {_first_line(error)}") from error
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, before)  # Ray takes it; ours ends tasks and says how to resume
    try:
        yield
    except ClusterLost:  # Ray may wait for the head for a minute, and then end this process
        ending = threading.Thread(target=ray.shutdown, daemon=True)
        ending.start()
        ending.join(ANSWER)
        raise
    except BaseException:
        ray.shutdown()
        raise
    ray.shutdown()


def _must_answer(address: str) -> None:
    """Refuse HOST:PORT at which nobody listens: Ray itself would try for many minutes."""
    host, _, port = address.rpartition(":")
    if port.isdigit() and "/" not in host:
        socket.create_connection((host.strip("[]"), int(port)), timeout=ANSWER).close()


def _must_fit(ray: Any, engine: Engine) -> None:
    """Refuse a request that no machine can meet now; a task for which there is no place would wait for ever."""
    wanted = {"CPU": engine.cpus, "GPU": engine.gpus, "memory": engine.memory or 0}
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    if any(all(node.get(name, 0) >= amount for name, amount in wanted.items()) for node in nodes):
        return
    best = {name: max((node.get(name, 0) for node in nodes), default=0) for name in wanted}
    have = f"{best['CPU']:g} CPUs, {best['GPU']:g} GPUs and {best['memory'] / 2**30:.1f} GiB"
    raise UserError(f"no machine of the Ray cluster has what --cpus, --gpus and --memory ask for: the most is {have}")


def _places(ray: Any, engine: Engine) -> int:
    """How many stages are under way at once: as many as fit, if nothing else is said."""
    if engine.jobs:
        return engine.jobs
    whole = ray.cluster_resources()
    wanted = {"CPU": engine.cpus, "GPU": engine.gpus, "memory": engine.memory or 0}
    return max(1, min(int(whole.get(name, 0) // amount) for name, amount in wanted.items() if amount))


@dataclass
class OnRay:
    """Computes stages as tasks. It holds nothing of a task under way, so many threads share one."""

    ray: Any
    task: Any
    wanted: dict[str, Any]
    """What is set aside for each task."""
    shelf: Shelf
    line: Line
    store: Store
    where: Path | None
    retries: int

    @property
    def broken(self) -> Exception | None:
        return self.line.lost

    def compute(self, stage: Stage, report: Report) -> bool:
        if stage.kind == "round":  # it compares numbers that the store has, which takes less than to send them
            return attempt(stage, self.store, self.where, report)
        with self.store.lock(stage.key):
            if stage.done(self.store):
                self.store.forget_workings(stage.key)
                return False
            if self.line.closing:  # while it waited for the lock
                raise Interrupted
            task = self._started(stage)
            arrival = parcels.Arrival(stage, self.store)
            with self.line.watching(stage, report, task) as call:
                try:
                    outcome = self._received(task, arrival, stage)
                except self.ray.exceptions.RayError as error:
                    arrival.drop()
                    raise self._lost(call, error) from error
            if outcome.again:
                raise WorkerLost(outcome.reason)
            if outcome.reason:
                raise self._failed(stage, outcome.reason, outcome.traceback)
            arrival.settle(outcome.node)
            self.store.succeeded(stage.key)
            return True

    def _started(self, stage: Stage) -> Any:
        work = self.shelf.work(stage, self.store, self.where, self.line.actor)
        return self.task.options(name=stage.name, **self.wanted).remote(work)

    def _received(self, task: Any, arrival: parcels.Arrival, stage: Stage) -> Outcome:
        """How a stage ended, once all of its result is here."""
        outcome: Outcome = self.ray.get(next(task))
        if outcome.log:
            write_bytes(self.store.log_path(stage.key), outcome.log.encode())
        for piece in task:
            arrival.add(self.ray.get(piece))
        return outcome

    def _lost(self, call: Call, error: Exception) -> Exception:
        kinds = self.ray.exceptions
        if self.line.closing:
            return Interrupted()
        if call.overdue:
            if call.last_words:
                write_bytes(self.store.log_path(call.stage.key), call.last_words.encode())
            reason = f"it took longer than the {self.line.timeout:g} s that --timeout allows"
            said = logs.tail(self.store, call.stage.key) if call.last_words else ""  # else it is of an earlier attempt
            return self._failed(call.stage, reason, said)
        if isinstance(error, kinds.OutOfMemoryError):
            return WorkerLost("its machine ran out of memory: ask for more with --memory, or run fewer with --jobs")
        if isinstance(error, kinds.NodeDiedError | kinds.ObjectLostError):
            return WorkerLost("its machine was lost")
        if isinstance(error, kinds.WorkerCrashedError):
            return WorkerLost("its worker process died, or its machine was lost")
        return WorkerLost(f"{type(error).__name__}: {_first_line(error)}")

    def _failed(self, stage: Stage, reason: str, traceback: str = "") -> StageFailed:
        self.store.fail(stage.key, stage.job, reason, traceback)
        return StageFailed(reason)


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in reversed(str(error).splitlines()) if line.strip()), type(error).__name__)
