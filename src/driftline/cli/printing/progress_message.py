"""A message for slow steps. It imports nothing heavy, so that it can start first."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from driftline.cli.printing.terminal import echo

FIRST_AFTER = 0.3  # seconds until the first message
REPEAT_AFTER = 10.0  # seconds between two messages


@contextmanager
def progress_message(what: str, quiet: bool = False) -> Iterator[None]:
    """Print what is being done if it takes longer than a moment, and repeat it from time to time."""
    stopped, began = threading.Event(), time.monotonic()

    def print_messages() -> None:
        pause = FIRST_AFTER
        while not stopped.wait(pause):
            took = time.monotonic() - began
            echo(what if pause == FIRST_AFTER else f"{what} (for {took:.0f} s)", err=True)
            pause = REPEAT_AFTER

    thread = threading.Thread(target=print_messages, daemon=True)
    if not quiet:
        thread.start()
    try:
        yield
    finally:
        stopped.set()
        if thread.is_alive():
            thread.join()
