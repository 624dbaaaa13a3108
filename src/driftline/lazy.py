"""Public names that are imported on first use, so that importing a package stays fast."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any


def exports(package: str, table: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` for a package whose public names come from `module:name`."""

    def get(name: str) -> Any:
        if name not in table:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        return load(table[name])

    def listed() -> list[str]:
        return sorted({*vars(importlib.import_module(package)), *table})

    return get, listed


def load(target: str) -> Any:
    """Return what `module:name` names.

    >>> load("math:pi")
    3.141592653589793
    """
    module, _, attribute = target.partition(":")
    return getattr(importlib.import_module(module), attribute)
