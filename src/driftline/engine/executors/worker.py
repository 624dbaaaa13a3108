"""A worker process: `python -m driftline.engine.executors.worker STORE [DATA]`.

It reads stages from standard input, one JSON line each; a line before them holds the user's objects. It answers on
standard output with lines about progress and the end of the stage. When its input closes, because the driver finished
or died, it exits immediately: what is not in the store yet is computed again when it is needed. What a stage prints
goes to its log.
"""

from __future__ import annotations

import base64
import faulthandler
import io
import json
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from driftline.engine.executors.process import keep_freed_memory
from driftline.io import user_objects
from driftline.types import JsonObject

if TYPE_CHECKING:
    from driftline.engine.build import DatasetCache

REPORT_INTERVAL = 0.05  # seconds between two lines of progress: a stream may have a million steps


def main() -> None:
    """Serve stages until the input closes."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # stopping is the driver's to handle: when it ends, so does this process
    keep_freed_memory()
    _dump_on_crash()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a library prints must not mix with the answers
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # a process that is killed does not flush its last words
    stages: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_read_stdin, args=(stages,), daemon=True).start()

    from driftline.engine.build import DatasetCache
    from driftline.engine.executors.process import one_thread

    def reply(**content: Any) -> None:
        answers.write(json.dumps(content) + "\n")
        answers.flush()

    datasets = DatasetCache(Path(sys.argv[2]) if len(sys.argv) > 2 else None)
    with one_thread():
        while True:
            line = stages.get()
            if line.startswith("{"):
                reply(**_compute(line, datasets, reply))
            else:
                user_objects.receive(base64.b64decode(line))


def _compute(line: str, datasets: DatasetCache, reply: Callable[..., None]) -> JsonObject:
    """Compute a stage and report its progress; return how it ended."""
    from driftline.engine.executors import logs
    from driftline.engine.executors.base import StageFailed, run_stage
    from driftline.engine.executors.process import out_of_memory
    from driftline.engine.stages import Stage, StageContext
    from driftline.errors import DiskError
    from driftline.store.store import Store

    stage, store = Stage.from_json(line), Store(Path(sys.argv[1]))
    context = StageContext(store, datasets, on_progress=_throttled(reply))
    try:
        with logs.redirect(store, stage.key):
            return {"finished": stage.key, "computed": run_stage(stage, context)}
    except StageFailed as failure:
        return {"failed": str(failure), "spent": out_of_memory(failure.__cause__)}
    except DiskError as error:
        return {"disk": str(error)}


def _throttled(reply: Callable[..., None]) -> Callable[[int, int], None]:
    """Return a progress callback that replies at most every REPORT_INTERVAL seconds, and always first and last."""
    last = -REPORT_INTERVAL

    def on_progress(done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= REPORT_INTERVAL or done == total:
            last = now
            reply(done=done, total=total)

    return on_progress


def _dump_on_crash() -> None:
    """Print the stack of all threads if the process crashes, or is about to be killed."""
    faulthandler.enable()
    if hasattr(signal, "SIGUSR1"):
        faulthandler.register(signal.SIGUSR1)


def _read_stdin(stages: queue.Queue[str]) -> None:
    with open(os.dup(0), encoding="utf-8") as lines:  # a forked process closes sys.stdin, and would wait for its lock
        for line in lines:
            stages.put(line)
    os._exit(0)


if __name__ == "__main__":
    main()
