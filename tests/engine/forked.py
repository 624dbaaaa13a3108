"""Workers that are there at once: copies of this process, with everything loaded."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from typing import Any

from driftline.engine.executors import worker
from driftline.engine.executors.local import LocalExecutor
from driftline.io import user_objects
from driftline.store.store import Store


class Forked:
    """A process that serves stages as a worker does, as far as `Worker` needs to know it."""

    def __init__(self, store: Store) -> None:
        (read, tell), (listen, write) = os.pipe(), os.pipe()
        self.code: int | None = None
        self._asking = threading.Lock()
        self.pid = os.fork()
        if self.pid == 0:
            _serve(listen, tell, store)
        os.close(listen)
        os.close(tell)
        self.stdin, self.stdout = os.fdopen(write, "w"), os.fdopen(read)

    def poll(self) -> int | None:
        """The exit code, if it has ended."""
        with self._asking:  # of two threads only one is told
            if self.code is None:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
                self.code = os.waitstatus_to_exitcode(status) if pid else None
            return self.code

    def wait(self, timeout: float = 0) -> int:
        while (code := self.poll()) is None:
            time.sleep(0.001)
        return code

    def send_signal(self, which: int) -> None:
        os.kill(self.pid, which)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _serve(listen: int, tell: int, store: Store) -> None:
    try:
        os.dup2(listen, 0)
        os.dup2(tell, 1)
        os.closerange(3, 1024)  # pipes of other workers above all: who holds one hides that the driver has died
        sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w")
        sys.argv = ["worker", str(store.folder)]
        user_objects._objects.clear()  # a new process has none
        worker.main()
    finally:
        os._exit(1)


class ForkedWorker(LocalExecutor):
    """A worker that starts at once."""

    def _start(self) -> Any:
        return Forked(self._store)
