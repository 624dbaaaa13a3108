"""A million runs on 10,000 workers, by simulating the scheduler with the costs that it has here.

    python bench/million_runs.py [--runs N] [--workers N]

Measured first: what the driver spends on a stage (lock, receive, check, move into the store, next stage), the memory
of a planned stage, the size of the status file, and the files of a run. Then simulated: every worker runs one stage
after the other, and the driver serves one end of a stage at a time. How long a message takes in Ray is an assumption.
"""

from __future__ import annotations

import argparse
import heapq
import json
import random
import tempfile
import time
import tracemalloc
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from synthetic_runs import write

from driftline.engine.executors.base import Executor
from driftline.engine.executors.scheduler import schedule
from driftline.engine.executors.status import WRITE_INTERVAL, StatusFile
from driftline.engine.planning.plan import Plan, plan
from driftline.engine.ray.transfer import IncomingResult, iter_chunks
from driftline.engine.stages import Stage, StreamRun
from driftline.spec import parse
from driftline.store.store import Store
from driftline.types import OnProgress

METHODS = [{"name": "erm", "updates": k} for k in range(1, 11)]
SPEC: dict[str, Any] = {"benchmark": "timeline", "data": {"name": "digits", "periods": 4}, "model": "linear"}
MEASURED = 1_000  # stages
RAY_MESSAGE = 0.9e-3  # seconds of one process per task or call of an actor; an assumption, from trivial tasks
REPORTS = 2.0  # reports of progress per second and task
MINUTES = (1, 10, 60)


@dataclass(frozen=True)
class Costs:
    """What a stage costs its driver."""

    seconds: float
    """From the end of a stage in a worker to its next stage, without Ray."""
    planned: float
    """Bytes of memory of a stage in the plan and the scheduler."""
    status: float
    """Bytes of a stage in the status file, which is written every second."""
    status_seconds: float
    files: int
    result: int
    """Bytes of the files of a run."""


class Deliveries(Executor):
    """An executor whose stages end at once, with the files of a finished run as they come from another machine."""

    retries = 0
    in_process = True
    broken = None

    def __init__(self, store: Store, files: dict[str, Path]) -> None:
        self._store, self._files = store, files

    def submit(self, stage: Stage, on_progress: OnProgress) -> bool:
        """Receive the result of a stage."""
        with self._store.lock(stage.key):
            stage.is_done(self._store)
            incoming = IncomingResult(stage, self._store)
            for chunk in iter_chunks(self._files):
                incoming.add(chunk)
            incoming.commit("node")
            self._store.clear_failure(stage.key)
        return True


def planned_runs(n: int) -> tuple[Plan, float]:
    """Return a plan of about this many runs, and the bytes that a run takes in it."""
    plan(parse({**SPEC, "methods": METHODS, "seeds": 1}))  # imports and data
    tracemalloc.start()
    made = plan(parse({**SPEC, "methods": METHODS, "seeds": n // len(METHODS)}))
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return made, size / len(made.run_keys)


def measure() -> Costs:
    """Return the costs on this machine."""
    made, planned = planned_runs(MEASURED)
    runs = [replace(stage, pretrained=None, fits=()) for stage in made.stages if isinstance(stage, StreamRun)]
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder, "source"), 1)
        files = {path.name: path for path in next(Path(folder, "source", "runs").iterdir()).iterdir()}
        store = Store.create(Path(folder, "store"))
        began = time.process_time()
        schedule(runs, store, [Deliveries(store, files)])
        seconds = (time.process_time() - began) / len(runs)
        status = StatusFile(store, runs, runs, 0)
        began = time.process_time()
        text = json.dumps(asdict(status._status))
        written = (time.process_time() - began) / len(runs)
        size = sum(path.stat().st_size for path in files.values())
    return Costs(seconds, planned, len(text) / len(runs), written, len(files), size)


def simulate(runs: int, workers: int, seconds: float, service: float) -> tuple[float, float]:
    """Return the hours that the runs take, and the share of them in which workers compute.

    A run takes between half and one and a half of `seconds`. The driver serves the end of a run in `service` seconds,
    first come, first served; the worker waits for it.
    """
    random_ = random.Random(0)
    ends = [(place * service + seconds * (0.5 + random_.random()), place) for place in range(min(workers, runs))]
    heapq.heapify(ends)
    free, left, computed = len(ends) * service, runs - len(ends), sum(end - k * service for end, k in ends)
    while ends:
        end, place = heapq.heappop(ends)
        free = max(free, end) + service
        if left:
            left -= 1
            took = seconds * (0.5 + random_.random())
            computed += took
            heapq.heappush(ends, (free + took, place))
    return free / 3600, computed / (free * workers)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument("--workers", type=int, default=10_000)
    given = parser.parse_args()
    costs, n = measure(), given.runs
    messages = 2 + costs.files  # the task, how it ended, and one item per file
    print(f"a stage: {1e3 * costs.seconds:.2f} ms of the driver, {costs.files} files, {costs.result / 1e3:.1f} kB")
    print(f"the plan: {n * costs.planned / 1e9:.1f} GB ({costs.planned / 1e3:.1f} kB a run)")
    print(
        f"the status file: {n * costs.status / 1e6:.0f} MB, {n * costs.status_seconds:.1f} s to write, "
        f"every {WRITE_INTERVAL:g} s"
    )
    print(f"reports of progress: {REPORTS * given.workers:,.0f} a second, {1 / RAY_MESSAGE:,.0f} can be taken")
    print("minutes a run | hours | workers busy | ends/s | messages/s without progress | MB/s")
    for minutes in MINUTES:
        service = costs.seconds + messages * RAY_MESSAGE
        hours, busy = simulate(n, given.workers, 60 * minutes, service)
        rate = n / (3600 * hours)
        print(
            f"{minutes:13} | {hours:5.1f} | {busy:12.2f} | {rate:6.1f} | {rate * messages:27.0f} | "
            f"{rate * costs.result / 1e6:4.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
