"""Say what a command is doing while nothing else can be shown. It imports nothing heavy, so that it can start first."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from driftline.cli.terminal import echo

MOMENT = 0.3  # seconds after which it is said what is being done
OFTEN = 10.0  # seconds between two lines about the same


@contextmanager
def announced(what: str, quiet: bool = False) -> Iterator[None]:
    """Say what is being done if it takes longer than a moment, and from time to time that it goes on."""
    over, began = threading.Event(), time.monotonic()

    def say() -> None:
        pause = MOMENT
        while not over.wait(pause):
            took = time.monotonic() - began
            echo(what if pause == MOMENT else f"{what} (for {took:.0f} s)", err=True)
            pause = OFTEN

    teller = threading.Thread(target=say, daemon=True)
    if not quiet:
        teller.start()
    try:
        yield
    finally:
        over.set()
        if teller.is_alive():
            teller.join()
