"""Doctests are looked for only in modules that have one: importing all others takes every test process a while."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[Any], list[Any]]:
    """Keep a file's tests, and its doctests if it has any."""
    found = yield
    if file_path.suffix != ".py" or ">>> " in file_path.read_text(encoding="utf-8"):
        return found
    return [one for one in found if type(one) is pytest.Module]
