"""A worker process: `python -m driftline.engine.worker STORE [DATA]`.

It reads stages from standard input, one JSON line each, and answers on standard output with lines of its progress and
how the stage ended. When its input closes, because the driver finished or died, it ends at once, whatever it is
doing: what is not in the store yet is computed again by whoever needs it.
"""

from __future__ import annotations

import ctypes
import json
import os
import queue
import signal
import sys
import threading
from pathlib import Path
from typing import Any

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3


def keep_memory() -> None:
    """Let glibc keep freed blocks: mapping them anew on each training step costs up to half of the time."""
    try:
        libc = ctypes.CDLL(None)
        libc.mallopt(M_MMAP_THRESHOLD, 1 << 30)
        libc.mallopt(M_TRIM_THRESHOLD, 1 << 30)
    except (OSError, AttributeError):
        return  # another C library, which manages its memory in its own way


def main() -> None:
    """Serve stages until the input closes."""
    for told in (signal.SIGINT, signal.SIGTERM):
        signal.signal(told, signal.SIG_IGN)  # stopping is the driver's to handle: when it ends, so does this process
    keep_memory()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints must not mix with the answers
    stages: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_listen, args=(stages,), daemon=True).start()

    from driftline.engine.execute import StageFailed, attempt, one_thread
    from driftline.engine.stages import Stage
    from driftline.errors import DiskError
    from driftline.store import Store

    def say(**content: Any) -> None:
        answers.write(json.dumps(content) + "\n")
        answers.flush()

    store = Store(Path(sys.argv[1]))
    where = Path(sys.argv[2]) if len(sys.argv) > 2 else None
    with one_thread():
        while True:
            stage = Stage.from_json(stages.get())
            try:
                attempt(stage, store, where, lambda done, of: say(done=done, of=of))
            except StageFailed as failure:
                say(failed=str(failure))
            except DiskError as error:
                say(disk=str(error))
            else:
                say(finished=stage.key)


def _listen(stages: queue.Queue[str]) -> None:
    for line in sys.stdin:
        stages.put(line)
    os._exit(0)


if __name__ == "__main__":
    main()
