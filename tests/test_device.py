"""What `on_sim_device.py` checks on a simulated accelerator, in two processes with half of the methods each."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CASES = Path(__file__).with_name("on_sim_device.py")


@pytest.mark.parametrize(("part", "others"), [(0, ""), (1, "every_method")])
def test_on_a_simulated_accelerator(part: int, others: str) -> None:
    command = [sys.executable, "-m", "pytest", "-n", "0", "-q", "-p", "no:cacheprovider", str(CASES), "-k", others]
    environment = {**os.environ, "DRIFTLINE_TEST_PART": str(part)}
    done = subprocess.run(command, env=environment, cwd=CASES.parents[1], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert " passed" in done.stdout or "100%" in done.stdout
