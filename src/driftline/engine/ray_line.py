"""How tasks on Ray tell the driver about their progress, and how it ends those that take too long."""

from __future__ import annotations

import math
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from driftline.engine.stages import Report, Stage
from driftline.errors import ClusterLost

BEAT = 0.5  # seconds between two looks at the tasks' progress
PATIENCE = 10.0  # seconds that tasks have to end
ANSWER = 5.0  # seconds that the head has to answer
HEAD = 20.0  # seconds without an answer after which the head is lost; after 60 Ray itself ends this process
LAST_WORDS = 2.0  # seconds that a task has, when its time is up, to say where it hangs


@dataclass
class Call:
    """A task under way."""

    stage: Stage
    report: Report
    task: Any
    began: float | None = None
    overdue: bool = False
    last_words: str = ""
    """What it had printed, and where it was, when its time was up."""


@dataclass
class Line:
    """The driver's end: what it was told, and the tasks under way."""

    ray: Any
    timeout: float | None
    closing: bool = False
    lost: ClusterLost | None = None
    """Set when the head of the cluster no longer answers."""
    calls: dict[str, Call] = field(default_factory=dict)

    def __post_init__(self) -> None:
        here = self.ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
            self.ray.get_runtime_context().get_node_id(), soft=False
        )  # with the driver, whose end is the only one that it may share
        self.actor = self.ray.remote(num_cpus=0, scheduling_strategy=here)(Told).remote()
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    @contextmanager
    def watching(self, stage: Stage, report: Report, task: Any) -> Iterator[Call]:
        call = Call(stage, report, task)
        with self._lock:
            self.calls[stage.key] = call
        try:
            yield call
        finally:
            with self._lock:  # nothing is reported of a stage that has ended
                self.calls.pop(stage.key)

    def close(self) -> None:
        """End the tasks that are under way, then listen no more."""
        self.closing = True
        self._over.set()
        self._thread.join()
        with self._lock:
            for call in self.calls.values():
                self.ray.cancel(call.task, force=True)
        until = time.monotonic() + PATIENCE
        while self.calls and time.monotonic() < until:  # whoever waits for a task must not find the connection closed
            time.sleep(0.05)
        self.ray.kill(self.actor)

    def _listen(self) -> None:
        host, _, port = self.ray.get_runtime_context().gcs_address.rpartition(":")
        heard = time.monotonic()
        while not self._over.wait(BEAT):
            with suppress(OSError):
                socket.create_connection((host.strip("[]"), int(port)), timeout=ANSWER).close()
                heard = time.monotonic()
            if time.monotonic() - heard > HEAD:
                self.lost = ClusterLost()
                return
            with suppress(self.ray.exceptions.RayError):
                told, words = self.ray.get(self.actor.take.remote(), timeout=10)
                with self._lock:
                    self._heard(told, words, time.monotonic())

    def _heard(self, told: dict[str, tuple[int, int]], words: dict[str, str], now: float) -> None:
        for key, (done, of) in told.items():
            if (call := self.calls.get(key)) is not None:
                call.began = call.began or now
                call.report(done, of)
        for call in self.calls.values():
            call.last_words = words.get(call.stage.key, call.last_words)
            allowed = (self.timeout or math.inf) + (0 if call.last_words else LAST_WORDS)
            if call.began and now - call.began > allowed and not call.overdue:
                call.overdue = True
                self.ray.cancel(call.task, force=True)


class Told:
    """The actor that keeps what tasks last said until the driver asks."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[int, int]] = {}
        self._words: dict[str, str] = {}

    def tell(self, key: str, done: int, of: int) -> None:
        self._last[key] = (done, of)

    def last_words(self, key: str, words: str) -> None:
        self._words[key] = words

    def take(self) -> tuple[dict[str, tuple[int, int]], dict[str, str]]:
        told, self._last, self._words = (self._last, self._words), {}, {}
        return told
