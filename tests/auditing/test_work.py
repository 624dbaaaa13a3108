"""Worker processes of an audit end with it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time

import pytest

from driftline.auditing.work import carry_out

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="pieces run in forked processes on Linux alone")


def interrupt(signum: int, frame: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_an_interruption_does_not_wait_for_running_pieces(sent: signal.Signals) -> None:
    before, started = signal.signal(sent, interrupt), time.monotonic()
    timer = threading.Timer(0.5, os.kill, (os.getpid(), sent))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            carry_out({"a": lambda: time.sleep(30), "b": lambda: time.sleep(30)}, jobs=2)
    finally:
        timer.cancel()
        signal.signal(sent, before)
    assert time.monotonic() - started < 20
    assert not multiprocessing.active_children()
