"""Say what a command is doing while nothing else can be shown. It imports nothing heavy, so that it can start first."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from driftline.cli.printing.terminal import echo

FIRST_AFTER = 0.3  # seconds after which it is said what is being done
REPEAT_AFTER = 10.0  # seconds between two lines about the same


@contextmanager
def progress_message(what: str, quiet: bool = False) -> Iterator[None]:
    """Say what is being done if it takes longer than a moment, and from time to time that it goes on."""
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
