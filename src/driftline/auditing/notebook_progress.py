"""Progress of an audit in a notebook: one line that is replaced, and removed at the end."""

from __future__ import annotations

import sys
from collections.abc import Callable
from html import escape
from importlib import import_module
from typing import Any


class NotebookProgress:
    """Shows the latest task and how many are done."""

    def __init__(self) -> None:
        self.handle: Any = None

    def __call__(self, description: str, done: int, total: int) -> None:
        plain = f"{done} of {total}: {description}"
        html = f'<progress value="{done}" max="{total}"></progress> {escape(plain)}'
        shown = {"text/plain": plain, "text/html": html}
        if self.handle is None:
            self.handle = import_module("IPython.display").display(shown, raw=True, display_id=True)
        else:
            self.handle.update(shown, raw=True)

    def close(self) -> None:
        """Remove the line."""
        if self.handle is not None:
            self.handle.update({"text/plain": "", "text/html": ""}, raw=True)


def notebook_progress() -> NotebookProgress | None:
    """Return a display of progress if this is a notebook, which has a kernel; None on a terminal."""
    get_ipython: Callable[[], Any] = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)
    return NotebookProgress() if getattr(get_ipython(), "kernel", None) is not None else None
