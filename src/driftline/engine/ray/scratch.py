"""The scratch folder of a sweep on each machine of a Ray cluster.

Ray kills its processes, so they do not clean up themselves. Nothing heavy is imported here, because a process may be
started only to remove the folder.
"""

from __future__ import annotations

import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from types import ModuleType

CLEANUP_SECONDS = 30.0  # seconds that machines have to remove their folders


def scratch_dir(sweep: str) -> Path:
    """Return the folder for files of this sweep's tasks."""
    folder = _folder(sweep)
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def remove(sweep: str) -> None:
    """Remove the folder on this machine."""
    shutil.rmtree(_folder(sweep), ignore_errors=True)


def remove_all(ray: ModuleType, sweep: str) -> None:
    """Remove the folder on all machines that can be reached."""
    on = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
    with suppress(ray.exceptions.RayError):
        machines = [on(node["NodeID"], soft=False) for node in ray.nodes() if node["Alive"]]
        task = ray.remote(num_cpus=0, max_retries=0)(remove)
        tasks = [task.options(scheduling_strategy=machine).remote(sweep) for machine in machines]
        ray.wait(tasks, num_returns=len(tasks), timeout=CLEANUP_SECONDS)


def _folder(sweep: str) -> Path:
    return Path(tempfile.gettempdir()) / f"driftline-{sweep}"
