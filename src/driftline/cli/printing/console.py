"""A console of rich for the command line; apart from `terminal`, since rich takes a moment to load."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from driftline.io.sanitize import escape_control


class SafeConsole(Console):
    """A console of rich whose texts are filtered; cells and descriptions are not texts, and go through `visible`."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Print texts and what else rich can show."""
        super().print(*(escape_control(one) if isinstance(one, str) else one for one in objects), **options)
