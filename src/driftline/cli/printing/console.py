"""A rich console for the command line; separate from `terminal`, because importing rich takes time."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from driftline.io.sanitize import escape_control


class SafeConsole(Console):
    """A console that escapes control characters in strings; escape those in tables and descriptions beforehand."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Print strings and other objects that rich can show."""
        super().print(*(escape_control(one) if isinstance(one, str) else one for one in objects), **options)
