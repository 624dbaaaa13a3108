"""Parallel map over independent items.

Processes are forked, which shares large tables without a copy and accepts models that cannot be pickled. Windows has no
fork and system libraries of macOS may crash after one, so elsewhere than on Linux items run one after another. Every
call uses one thread for numerics, so results do not depend on the number of workers.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from threadpoolctl import threadpool_limits

T = TypeVar("T")
R = TypeVar("R")
Call = Callable[[int], Any]
PR_SET_PDEATHSIG = 1
Submit = Callable[[int], "Future[Any]"]

_worker_call: ContextVar[Call] = ContextVar("the call that a forked process makes for each index")


def map(
    function: Callable[[T], R],
    items: Sequence[T],
    jobs: int,
    *,
    on_done: Callable[[T, int], None] = lambda item, count: None,
    stop: threading.Event | None = None,
) -> list[R]:
    """Return `[function(item) for item in items]`, computed by `jobs` forked processes.

    `on_done` is called with each finished item and the number of items finished so far. With `stop`, threads are used
    instead of processes; the event is set when an error or an interruption ends the map, so that running calls can
    give up.

    >>> map(str.upper, ["a", "b"], jobs=1)
    ['A', 'B']
    """

    def call(index: int) -> R:
        return function(items[index])

    results: dict[int, R] = {}
    with threadpool_limits(1):  # forked processes inherit it
        if jobs == 1 or len(items) <= 1 or (stop is None and sys.platform != "linux"):
            for index, item in enumerate(items):
                results[index] = call(index)
                on_done(item, len(results))
        else:
            with _workers(call, jobs, stop) as submit:
                futures = {submit(index): index for index in range(len(items))}
                for future in as_completed(futures):
                    results[futures[future]] = future.result()
                    on_done(items[futures[future]], len(results))
    return [results[index] for index in range(len(items))]


def _workers(call: Call, jobs: int, stop: threading.Event | None) -> AbstractContextManager[Submit]:
    return _processes(call, jobs) if stop is None else _threads(call, jobs, stop)


@contextmanager
def _processes(call: Call, jobs: int) -> Iterator[Submit]:
    """Start processes that hold `call`; kill them on an error or an interruption."""
    before = set(multiprocessing.active_children())
    with forked_pool(call, jobs) as pool:
        try:
            yield lambda index: pool.submit(run_in_worker, index)
        except BaseException:
            for worker in set(multiprocessing.active_children()) - before:
                worker.kill()
            raise


def forked_pool(call: Call, workers: int) -> ProcessPoolExecutor:
    """Return a pool of processes, forked when work is submitted, in which `run_in_worker(index)` is `call(index)`."""
    return ProcessPoolExecutor(workers, multiprocessing.get_context("fork"), _start_worker, (call,))


def _start_worker(call: Call) -> None:
    _worker_call.set(call)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # a worker does not outlive the process that forked it
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # the parent handles them, and kills its workers


def run_in_worker(index: int) -> Any:
    """Return the result of the pool's call for an index; to be submitted to a `forked_pool`."""
    return _worker_call.get()(index)


@contextmanager
def _threads(call: Call, jobs: int, stop: threading.Event) -> Iterator[Submit]:
    with ThreadPoolExecutor(jobs, initializer=_one_torch_thread) as pool:
        try:
            yield lambda index: pool.submit(call, index)
        except BaseException:
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise


def _one_torch_thread() -> None:
    """Limit torch, which counts its threads separately for each thread that calls it."""
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)
