"""Logs: what a stage prints in a worker, kept in the store."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from driftline.store.store import Store

TAIL_BYTES = 4000  # bytes of a log that are shown with a failure
MAX_BYTES = 4 * 2**20  # bytes of a log; of a longer one, the second half is kept
CHECK_INTERVAL = 0.2  # seconds between two looks at the size of a log
TRUNCATION_NOTICE = b"[the beginning of this log was removed: it had grown too long]\n"


@contextmanager
def redirect(store: Store, key: str) -> Iterator[None]:
    """Send what this process prints, also from C libraries, to the log of a stage; an empty log is removed."""
    path = store.log_path(key)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    except OSError:  # the stage itself reports a full disk
        yield
        return
    before = _redirect(log, log)
    os.close(log)
    over = threading.Event()
    watcher = threading.Thread(target=_truncate_if_long, args=(path, over), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        for handle in _redirect(*before) + before:
            os.close(handle)
        over.set()
        watcher.join()
        with suppress(OSError):
            if path.stat().st_size == 0:
                path.unlink()


def _truncate_if_long(path: Path, over: threading.Event) -> None:
    """Cut a log that grows too long, until the stage is over and once more then."""
    ended = False
    while not ended:
        ended = over.wait(CHECK_INTERVAL)
        with suppress(OSError), path.open("rb+") as file:
            size = os.fstat(file.fileno()).st_size
            if size > MAX_BYTES:
                file.seek(size - MAX_BYTES // 2)
                kept = file.read(MAX_BYTES // 2)
                file.seek(0)
                file.write(TRUNCATION_NOTICE + kept)  # later output is appended
                file.truncate()


def _redirect(out: int, err: int) -> tuple[int, int]:
    """Redirect the output of this process; return where it went before."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    before = os.dup(1), os.dup(2)
    os.dup2(out, 1)
    os.dup2(err, 2)
    return before


def tail(store: Store, key: str) -> str:
    """Return the end of a stage's log under its own heading, since it is not a traceback; empty if there is no log."""
    try:
        with store.log_path(key).open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL_BYTES))
            return "the end of its log:\n" + file.read().decode(errors="replace")
    except OSError:
        return ""
