"""What all tests share."""

from __future__ import annotations

import gc
import os
import signal
from pathlib import Path

import hypothesis
import pytest

# No deadline: a busy machine is not a failure. A quarter of the usual examples: the suite runs often.
hypothesis.settings.register_profile("suite", deadline=None, max_examples=25)
hypothesis.settings.load_profile("suite")

# Two test processes with two threads each would fight for the cores. Set before anything loads a library that asks.
os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"))

# Tests that were started in the background ignore Ctrl-C, and so would the commands that they start and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)


LONGEST = (
    "tests/engine/ray/test_executor.py",
    "tests/test_device.py",
    "tests/test_docs.py",
    "tests/examples/test_notebooks.py",
    "tests/cli/commands/test_quickstart.py",
    "tests/engine/test_chaos.py",
)
"""What takes longest or waits longest, in this order."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start with what takes longest, then with what runs in groups, so that no process is left alone with it."""

    def place(item: pytest.Item) -> int:
        long = [k for k, start in enumerate(LONGEST) if item.nodeid.startswith(start)]
        return min(long, default=len(LONGEST) + (item.get_closest_marker("xdist_group") is None))

    items.sort(key=place)


gc.disable()  # until all tests are collected: what is made before is there to stay


def pytest_collection_finish() -> None:
    """Look for garbage seldom, and never among the modules and tests that are there to stay."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """The same for torch, whatever a test before this one has set."""
    import torch

    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Tests leave nothing in the user's cache folder."""
    from driftline.data import fingerprint_cache

    monkeypatch.setenv("DRIFTLINE_FEATURES", "off")
    monkeypatch.setattr(fingerprint_cache, "folder", lambda: tmp_path_factory.getbasetemp() / "fingerprints")


@pytest.fixture
def real_data() -> list[Path]:
    """The folders with real data; the tests that need them say what is missing otherwise."""
    from driftline.data import data_folders

    found = [folder for folder in data_folders() if folder.is_dir()]
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
