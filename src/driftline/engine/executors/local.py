"""Worker processes on this machine."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from driftline.device import WORKER_VARIABLE
from driftline.engine.executors import logs
from driftline.engine.executors.base import Interrupted, StageFailed, WorkerLost, record_failure
from driftline.engine.stages import Stage
from driftline.errors import DiskError
from driftline.io import user_objects
from driftline.store.store import Store
from driftline.types import JsonObject, OnProgress

ONE_THREAD = {name: "1" for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
TRACEBACK_SECONDS = 0.3  # seconds that a worker has to say where it hangs
SHUTDOWN_SECONDS = 10.0  # seconds that a worker has to end by itself
SIGKILL = getattr(signal, "SIGKILL", 9)  # Windows has no such signal


class LocalExecutor:
    """Computes stages in a worker process, started when first needed and again if it dies."""

    broken = None
    in_process = False
    command: tuple[str, ...] = (sys.executable, "-m", "driftline.engine.executors.worker")

    def __init__(
        self, store: Store, data_dir: Path | None, timeout: float | None = None, retries: int = 2, number: int = 0
    ) -> None:
        """`timeout`: seconds a stage may take. `retries`: how often it is tried again if its worker dies.

        `number`: the worker's place among all, by which they share the devices of a machine.
        """
        self._number = number
        self.retries = retries
        self._timeout = timeout
        self._store = store
        self._data_dir = data_dir
        self._process: subprocess.Popen[str] | None = None
        self._closing = False
        self._reading = False

    def submit(self, stage: Stage, on_progress: OnProgress) -> bool:
        """Send a stage to the worker and wait for its result."""
        process, late = self._running(), threading.Event()
        clock = threading.Timer(self._timeout or 0, self._kill_overdue, (process, late))
        clock.daemon = True
        self._reading = True
        try:
            for answer in _exchange(process, stage):
                if "finished" in answer:
                    return bool(answer["computed"])
                if "failed" in answer:
                    if answer["spent"]:
                        self._stop()  # what it holds in memory must not make the next stage fail as well
                    raise StageFailed(answer["failed"])
                if "disk" in answer:
                    raise DiskError(answer["disk"])
                if self._timeout and clock.ident is None:  # it has begun: the wait for another process does not count
                    clock.start()
                on_progress(answer["done"], answer["total"])
        finally:
            clock.cancel()
            if clock.ident is not None:
                clock.join()  # if it went off just now, its kill must not hit the next stage
            self._reading = False
            if process.poll() is not None:
                _close_output(process)
        raise self._lost_error(process, stage, late.is_set())

    def close(self) -> None:
        """End the process."""
        self._closing = True
        self._stop()

    def _stop(self) -> None:
        """End the process: it notices that its input has closed; one that does not is killed."""
        if (process := self._process) is None:
            return
        assert process.stdin is not None
        with suppress(BrokenPipeError):
            process.stdin.close()
        try:
            process.wait(SHUTDOWN_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if not self._reading:  # else who reads closes it
            _close_output(process)

    def _start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*self.command, str(self._store.folder), *([str(self._data_dir)] if self._data_dir else [])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
            env={**os.environ, **ONE_THREAD, WORKER_VARIABLE: str(self._number)},
        )

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None or self._process.poll() is not None:
            self._process = self._start()
            assert self._process.stdin is not None
            with suppress(BrokenPipeError):  # the stage, sent next, meets it too
                self._process.stdin.write(base64.b64encode(user_objects.dumps()).decode() + "\n")
        return self._process

    def _kill_overdue(self, process: subprocess.Popen[str], late: threading.Event) -> None:
        """Let the worker of an overdue stage write its stack trace, and kill it."""
        late.set()
        if hasattr(signal, "SIGUSR1"):
            process.send_signal(signal.SIGUSR1)
            time.sleep(TRACEBACK_SECONDS)
        process.kill()
        process.wait()

    def _lost_error(self, process: subprocess.Popen[str], stage: Stage, late: bool) -> Exception:
        """Return what the loss of a worker means for its stage."""
        code = process.wait()
        if self._closing:
            return Interrupted()
        if late:
            reason = f"it was not done after {self._timeout:g} s; with a longer --timeout the same command resumes"
            record_failure(stage, self._store, reason, logs.tail(self._store, stage.key))
            return StageFailed(reason)
        return WorkerLost(f"its worker process ended {exit_reason(code)}")


def _close_output(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    process.stdout.close()


def exit_reason(code: int) -> str:
    """Describe the exit code of a process: the signal that ended it, or the code itself."""
    if code >= 0:
        return f"with exit code {code}"
    known = {int(member): member.name for member in signal.Signals}
    name = known.get(-code, f"signal {-code}")
    return f"by {name}" + (", perhaps for lack of memory" if -code == SIGKILL else "")


def _exchange(process: subprocess.Popen[str], stage: Stage) -> Iterator[JsonObject]:
    """Send a stage to a worker, and yield its answers until it dies."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(stage.to_json() + "\n")
        process.stdin.flush()
    except BrokenPipeError:
        with suppress(BrokenPipeError):
            process.stdin.close()
        return
    for line in process.stdout:
        if line.endswith("\n"):  # else it died in the middle of it
            yield json.loads(line)
