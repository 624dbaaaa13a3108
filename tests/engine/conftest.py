"""What tests of engines share."""

from __future__ import annotations

import pytest

from driftline.engine import pool

from .forked import ForkedWorker


@pytest.fixture
def quick_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine `local` has workers that start at once, where how they start is not what is tested."""
    monkeypatch.setattr(pool, "LocalExecutor", ForkedWorker)
