"""The folder of a sweep on a machine of a Ray cluster: Ray kills its processes, which then tidy up nothing themselves.

Nothing heavy is imported here, because a process may be started for no more than to remove the folder.
"""

from __future__ import annotations

import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

PATIENCE = 30.0  # seconds that machines have to remove their folders


def room(sweep: str) -> Path:
    """Where tasks of this sweep may leave files."""
    place = _place(sweep)
    place.mkdir(mode=0o700, exist_ok=True)
    return place


def clear(sweep: str) -> None:
    """Remove what tasks have left on this machine."""
    shutil.rmtree(_place(sweep), ignore_errors=True)


def clear_everywhere(ray: Any, sweep: str) -> None:
    """The same on all machines that can be reached."""
    on = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
    with suppress(ray.exceptions.RayError):
        machines = [on(node["NodeID"], soft=False) for node in ray.nodes() if node["Alive"]]
        task = ray.remote(num_cpus=0, max_retries=0)(clear)
        tasks = [task.options(scheduling_strategy=machine).remote(sweep) for machine in machines]
        ray.wait(tasks, num_returns=len(tasks), timeout=PATIENCE)


def _place(sweep: str) -> Path:
    return Path(tempfile.gettempdir()) / f"driftline-{sweep}"
