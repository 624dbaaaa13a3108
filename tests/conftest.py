"""What all tests share."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from driftline.data import folders


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """Two test processes with two threads each would fight for the cores."""
    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def no_kept_features(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests leave nothing in the user's cache folder."""
    monkeypatch.setenv("DRIFTLINE_FEATURES", "off")


@pytest.fixture
def real_data() -> list[Path]:
    """The folders with real data; the tests that need them say what is missing otherwise."""
    found = [folder for folder in folders() if folder.is_dir()]
    if not found:
        pytest.skip("no real data here: set DRIFTLINE_DATA to a folder that holds them")
    return found


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show what tests recorded as `told`, which is lost otherwise when they run in several processes."""
    for outcome in ("passed", "failed"):
        for report in terminalreporter.stats.get(outcome, []):
            for name, value in getattr(report, "user_properties", []):
                if name == "told":
                    terminalreporter.write_line(value)
