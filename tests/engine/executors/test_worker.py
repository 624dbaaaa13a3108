"""A worker process: what it runs may fork processes of its own."""

from __future__ import annotations

import multiprocessing
import os
import queue
import sys
import threading
import time

import pytest

from driftline import parallel
from driftline.engine.executors import worker


@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux only")
def test_a_stage_can_fork_while_the_worker_waits_for_the_next_one() -> None:
    listen, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.dup2(listen, 0)
            sys.stdin = os.fdopen(0)
            threading.Thread(target=worker._read_stdin, args=(queue.Queue(),), daemon=True).start()
            time.sleep(0.1)  # until it waits
            pool = parallel.forked_pool(lambda index: index + 1, 1)
            code = 0 if pool.submit(parallel.run_in_worker, 41).result(timeout=10) == 42 else 2
        finally:
            for child in multiprocessing.active_children():
                child.kill()
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    os.close(listen)
    os.close(write)
