"""Independent pieces of work, in forked processes on Linux and one after another elsewhere.

A fork shares the table without copying it and takes any model along, also one that cannot be pickled. Windows has no
fork, and on macOS system libraries may crash in a forked process. Each piece runs on one thread, so results do not
depend on how many run at once.
"""

from __future__ import annotations

import multiprocessing
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from typing import Any

_pieces: dict[str, Callable[[], Any]] = {}  # what a forked process finds; a closure cannot be sent to it


def carry_out(
    pieces: Mapping[str, Callable[[], Any]], jobs: int, told: Callable[[str], None] = lambda name: None
) -> dict[str, Any]:
    """The result of every piece, by name; `told` hears each name when it is done."""
    results = {}
    if jobs == 1 or len(pieces) == 1 or sys.platform != "linux":
        for name, piece in pieces.items():
            results[name] = _alone(piece)
            told(name)
        return results
    _pieces.update(pieces)
    try:
        with (
            ProcessPoolExecutor(jobs, multiprocessing.get_context("fork"), _ignore_signals) as pool,
            _killed_on_error(),
        ):
            waiting = {pool.submit(_piece, name): name for name in pieces}
            for done in as_completed(waiting):
                results[waiting[done]] = done.result()
                told(waiting[done])
    finally:
        _pieces.clear()
    return {name: results[name] for name in pieces}


@contextmanager
def _killed_on_error() -> Iterator[None]:
    """Kill the processes that were started meanwhile if an error or an interruption ends it: no one waits for them."""
    before = set(multiprocessing.active_children())
    try:
        yield
    except BaseException:
        for worker in set(multiprocessing.active_children()) - before:
            worker.kill()
        raise


def _ignore_signals() -> None:
    for one in (signal.SIGINT, signal.SIGTERM):
        signal.signal(one, signal.SIG_IGN)  # the parent handles them, and kills its workers


def _piece(name: str) -> Any:
    return _alone(_pieces[name])


def _alone(piece: Callable[[], Any]) -> Any:
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        return piece()
