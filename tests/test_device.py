"""What is checked on a simulated accelerator, in a process of its own: see `on_sim_device.py`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CASES = ("recipes_on_sim_device.py", "on_sim_device.py")


def test_on_a_simulated_accelerator() -> None:
    here = Path(__file__).parent
    files = [str(here / name) for name in CASES]
    command = [sys.executable, "-m", "pytest", "-n", "0", "-q", "-p", "no:cacheprovider", *files]
    done = subprocess.run(command, cwd=here.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
