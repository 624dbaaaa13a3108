"""A worker process: `python -m driftline.engine.worker STORE [DATA]`.

It reads stages from standard input, one JSON line each, and answers on standard output with lines of its progress and
how the stage ended. When its input closes, because the driver finished or died, it ends at once, whatever it is
doing: what is not in the store yet is computed again by whoever needs it. What a stage prints goes to its log.
"""

from __future__ import annotations

import ctypes
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
from typing import Any

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
OFTEN = 0.05  # seconds between two lines of progress: a stream may have a million steps


def keep_memory() -> None:
    """Let glibc keep freed blocks: mapping them anew on each training step costs up to half of the time."""
    try:
        libc = ctypes.CDLL(None)
        libc.mallopt(M_MMAP_THRESHOLD, 1 << 30)
        libc.mallopt(M_TRIM_THRESHOLD, 1 << 30)
    except (OSError, AttributeError, TypeError):
        return  # another C library, which manages its memory in its own way


def main() -> None:
    """Serve stages until the input closes."""
    for told in (signal.SIGINT, signal.SIGTERM):
        signal.signal(told, signal.SIG_IGN)  # stopping is the driver's to handle: when it ends, so does this process
    keep_memory()
    _tell_where()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a library prints must not mix with the answers
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # a process that is killed does not flush its last words
    stages: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_listen, args=(stages,), daemon=True).start()

    from driftline.engine.execute import one_thread

    def say(**content: Any) -> None:
        answers.write(json.dumps(content) + "\n")
        answers.flush()

    with one_thread():
        while True:
            say(**_answer(stages.get(), say))


def _answer(line: str, say: Callable[..., None]) -> dict[str, Any]:
    """Compute a stage, telling of its progress; how it ended."""
    from driftline.engine import logs
    from driftline.engine.execute import StageFailed, attempt, out_of_memory
    from driftline.engine.stages import Stage
    from driftline.errors import DiskError
    from driftline.store import Store

    stage, store = Stage.from_json(line), Store(Path(sys.argv[1]))
    where = Path(sys.argv[2]) if len(sys.argv) > 2 else None
    try:
        with logs.kept(store, stage.key):
            return {"finished": stage.key, "computed": attempt(stage, store, where, _now_and_then(say))}
    except StageFailed as failure:
        return {"failed": str(failure), "spent": out_of_memory(failure.__cause__)}
    except DiskError as error:
        return {"disk": str(error)}


def _now_and_then(say: Callable[..., None]) -> Callable[[int, int], None]:
    """Progress, of which the first and the last line are always told."""
    last = -OFTEN

    def report(done: int, of: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= OFTEN or done == of:
            last = now
            say(done=done, of=of)

    return report


def _tell_where() -> None:
    """Print the lines of code that were being carried out if the process crashes, or is about to be killed."""
    faulthandler.enable()
    if hasattr(signal, "SIGUSR1"):
        faulthandler.register(signal.SIGUSR1)


def _listen(stages: queue.Queue[str]) -> None:
    for line in sys.stdin:
        stages.put(line)
    os._exit(0)


if __name__ == "__main__":
    main()
