"""Parallel map: results in order, processes that end with the caller, threads that can be stopped."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time

import pytest

from driftline import parallel

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux only")


@on_linux
@pytest.mark.parametrize("jobs", [1, 2])
def test_results_are_in_the_order_of_items(jobs: int) -> None:
    finished: list[tuple[float, int]] = []
    waits = [0.2, 0.0]

    def wait(seconds: float) -> float:
        time.sleep(seconds)
        return seconds

    assert parallel.map(wait, waits, jobs, on_done=lambda item, done: finished.append((item, done))) == waits
    assert finished == ([(0.2, 1), (0.0, 2)] if jobs == 1 else [(0.0, 1), (0.2, 2)])


@on_linux
def test_items_run_in_this_process_where_forking_is_unsafe(monkeypatch: pytest.MonkeyPatch) -> None:
    assert os.getpid() not in parallel.map(lambda item: os.getpid(), [1, 2], jobs=2)
    monkeypatch.setattr("sys.platform", "darwin")
    assert set(parallel.map(lambda item: os.getpid(), [1, 2], jobs=2)) == {os.getpid()}


def test_an_error_stops_running_threads() -> None:
    stop = threading.Event()

    def run(item: str) -> bool:
        if item == "fails":
            raise ValueError("no luck")
        return stop.wait(20)

    started = time.monotonic()
    with pytest.raises(ValueError, match="no luck"):
        parallel.map(run, ["waits", "fails"], jobs=2, stop=stop)
    assert stop.is_set()
    assert time.monotonic() - started < 10


def interrupt(signum: int, frame: object) -> None:
    raise KeyboardInterrupt


@on_linux
@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_an_interruption_does_not_wait_for_running_processes(sent: signal.Signals) -> None:
    others = set(multiprocessing.active_children())  # of other tests
    before, started = signal.signal(sent, interrupt), time.monotonic()
    timer = threading.Timer(0.5, os.kill, (os.getpid(), sent))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            parallel.map(time.sleep, [30, 30], jobs=2)
    finally:
        timer.cancel()
        signal.signal(sent, before)
    assert time.monotonic() - started < 20
    assert set(multiprocessing.active_children()) <= others
