"""Independent pieces of work, in forked processes on Linux and one after another elsewhere.

A fork shares the table without copying it and takes any model along, also one that cannot be pickled. Windows has no
fork, and on macOS system libraries may crash in a forked process. Each piece runs on one thread, so results do not
depend on how many run at once.
"""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
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
        with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("fork")) as pool:
            waiting = {pool.submit(_piece, name): name for name in pieces}
            for done in as_completed(waiting):
                results[waiting[done]] = done.result()
                told(waiting[done])
    finally:
        _pieces.clear()
    return {name: results[name] for name in pieces}


def _piece(name: str) -> Any:
    return _alone(_pieces[name])


def _alone(piece: Callable[[], Any]) -> Any:
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        return piece()
