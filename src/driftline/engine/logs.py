"""What a stage prints while it is computed elsewhere, kept beside its result."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from driftline.store import Store

TAIL = 4000  # bytes of a log that are shown with a failure


@contextmanager
def kept(store: Store, key: str) -> Iterator[None]:
    """Send what this process prints, also from libraries in C, to the log of a stage; no file is left for nothing."""
    path = store.log_path(key)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    except OSError:  # a full disk is the stage's to report, not its log's
        yield
        return
    before = _redirected(log, log)
    os.close(log)
    try:
        yield
    finally:
        for handle in _redirected(*before) + before:
            os.close(handle)
        with suppress(OSError):
            if path.stat().st_size == 0:
                path.unlink()


def _redirected(out: int, err: int) -> tuple[int, int]:
    """Let this process print there from now on; where it printed before."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    before = os.dup(1), os.dup(2)
    os.dup2(out, 1)
    os.dup2(err, 2)
    return before


def tail(store: Store, key: str) -> str:
    """The end of a stage's log, under a heading, so that nobody takes it for the report of an exception; or nothing."""
    try:
        with store.log_path(key).open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL))
            return "the end of its log:\n" + file.read().decode(errors="replace")
    except OSError:
        return ""
