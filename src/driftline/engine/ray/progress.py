"""Progress of Ray tasks: tasks report to an actor, which the driver polls; overdue tasks are canceled."""

from __future__ import annotations

import math
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from driftline.engine.stages import Stage
from driftline.errors import ClusterLost
from driftline.types import OnProgress

REPORT_INTERVAL = 0.5  # seconds between two reports of a task, if there are few tasks
REPORTS_PER_SECOND = 500  # of all tasks together; the actor can take about 1,100
POLL_INTERVAL = 0.5  # seconds between two looks at the tasks' progress
SHUTDOWN_SECONDS = 10.0  # seconds that tasks have to end
CONNECT_SECONDS = 5.0  # seconds that the head has to answer
HEAD_TIMEOUT = 20.0  # seconds without an answer after which the head is lost; after 60 Ray itself ends this process
FINAL_LOG = 2.0  # seconds that a task has, when its time is up, to send its log and traceback


@dataclass
class ActiveTask:
    """A task in progress."""

    stage: Stage
    on_progress: OnProgress
    task: Any
    began: float | None = None
    overdue: bool = False
    final_log: str = ""
    """Its output and traceback at the time limit."""


@dataclass
class ProgressMonitor:
    """The driver's view of the tasks in progress."""

    ray: ModuleType
    timeout: float | None
    closing: bool = False
    lost: ClusterLost | None = None
    """Set when the head of the cluster no longer answers."""
    active: dict[str, ActiveTask] = field(default_factory=dict)

    def __post_init__(self) -> None:
        here = self.ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
            self.ray.get_runtime_context().get_node_id(), soft=False
        )  # with the driver, whose end is the only one that it may share
        self.actor = self.ray.remote(num_cpus=0, scheduling_strategy=here)(ProgressActor).remote()
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    @contextmanager
    def watching(self, stage: Stage, on_progress: OnProgress, task: object) -> Iterator[ActiveTask]:
        """Report the progress of a task and enforce the timeout."""
        active = ActiveTask(stage, on_progress, task)
        with self._lock:
            self.active[stage.key] = active
        try:
            yield active
        finally:
            with self._lock:  # nothing is reported of a stage that has ended
                self.active.pop(stage.key)

    def close(self) -> None:
        """Cancel the tasks in progress and stop listening."""
        self.closing = True
        self._over.set()
        self._thread.join()
        with self._lock:
            for active in self.active.values():
                self.ray.cancel(active.task, force=True)
        until = time.monotonic() + SHUTDOWN_SECONDS
        while self.active and time.monotonic() < until:  # threads that wait for a task still need the connection
            time.sleep(0.05)
        self.ray.kill(self.actor)

    def _listen(self) -> None:
        host, _, port = self.ray.get_runtime_context().gcs_address.rpartition(":")
        last_reply = time.monotonic()
        while not self._over.wait(POLL_INTERVAL):
            with suppress(OSError):
                socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS).close()
                last_reply = time.monotonic()
            if time.monotonic() - last_reply > HEAD_TIMEOUT:
                self.lost = ClusterLost()
                return
            with suppress(self.ray.exceptions.RayError):
                steps, logs = self.ray.get(self.actor.take.remote(), timeout=10)
                with self._lock:
                    self._update(steps, logs, time.monotonic())

    def _update(self, steps: dict[str, tuple[int, int]], logs: dict[str, str], now: float) -> None:
        """Pass on progress, and cancel tasks whose time is up."""
        for key, (done, total) in steps.items():
            if (active := self.active.get(key)) is not None:
                active.began = active.began or now
                active.on_progress(done, total)
        for active in self.active.values():
            active.final_log = logs.get(active.stage.key, active.final_log)
            allowed = (self.timeout or math.inf) + (0 if active.final_log else FINAL_LOG)
            if active.began and now - active.began > allowed and not active.overdue:
                active.overdue = True
                self.ray.cancel(active.task, force=True)


def report_interval(tasks: int) -> float:
    """Return the seconds between two reports of a task, if there are this many tasks at once.

    >>> [report_interval(tasks) for tasks in (1, 250, 10_000)]
    [0.5, 0.5, 20.0]
    """
    return max(REPORT_INTERVAL, tasks / REPORTS_PER_SECOND)


class ProgressActor:
    """The actor that keeps the latest progress of each task until the driver asks."""

    def __init__(self) -> None:
        self._steps: dict[str, tuple[int, int]] = {}
        self._logs: dict[str, str] = {}

    def report(self, key: str, done: int, total: int) -> None:
        """Note how many steps of a stage are done."""
        self._steps[key] = (done, total)

    def final_log(self, key: str, text: str) -> None:
        """Note the log of a stage whose time is up."""
        self._logs[key] = text

    def take(self) -> tuple[dict[str, tuple[int, int]], dict[str, str]]:
        """Return and forget everything reported so far."""
        reported, self._steps, self._logs = (self._steps, self._logs), {}, {}
        return reported
