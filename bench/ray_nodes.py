"""A sweep on a Ray cluster of two machines, one of which is lost half-way: the same records as in one process.

    python bench/ray_nodes.py [--seeds 5] [--cpus 1]

Both machines and the driver's are on this computer. Prints one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

from ray.cluster_utils import Cluster

from driftline.engine.build import DatasetCache
from driftline.engine.executors.base import Event
from driftline.engine.executors.config import ExecutorConfig
from driftline.engine.planning import matrix
from driftline.engine.planning.plan import merged
from driftline.engine.run import run_plan
from driftline.store.store import Store

SMALL = {"object_store_memory": 200 * 2**20, "include_dashboard": False}
WIDE = {
    "timeline": None,
    "refinement": {"refinement": {"episodes": 8, "upstream_updates": 300}},
    "open-world": {"open-world": {"upstream_updates": 300}},
}


def content(store: Store) -> dict[str, bytes]:
    found = {str(path.relative_to(store.folder)): path for path in store.folder.glob("runs/*/*")}
    return {name: path.read_bytes() for name, path in found.items() if path.name != "runtime.json"}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--cpus", type=int, default=1, help="of each machine")
    given = parser.parse_args()
    content = {"methods": ["frozen", "ncm", "er", "ft", "ewc"], "seeds": given.seeds, "benchmarks": WIDE}
    outlined = matrix.plan_matrix(matrix.read({"matrix": content}), DatasetCache())
    work = merged(outlined.plans.values())
    os.environ.setdefault("RAY_worker_niceness", "0")  # else a busy machine starves them, and not the serial sweep
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **SMALL})
    machines = [cluster.add_node(num_cpus=given.cpus, **SMALL) for _ in range(2)]
    finished = 0
    half_done: dict[str, bool] = {}

    def lose_a_machine(event: Event) -> None:
        """Once half of all is finished, and while every machine is in the first half of a stage."""
        nonlocal finished
        finished += event.kind == "finished"
        if event.kind == "advanced":
            half_done[event.stage.key] = 2 * event.done >= event.total
        else:
            half_done.pop(event.stage.key, None)
        amid = len(half_done) == 2 * given.cpus and not any(half_done.values())
        if amid and finished >= len(work.stages) // 2 and len(machines) == 2:
            cluster.remove_node(machines.pop(), allow_graceful=False)

    result: dict[str, Any] = {"benchmarks": len(WIDE), "runs": len(work.run_keys), "stages": len(work.stages)}
    with tempfile.TemporaryDirectory() as folder:
        alone, store = Store.create(Path(folder) / "serial"), Store.create(Path(folder) / "ray")
        started = time.perf_counter()
        config = ExecutorConfig("ray", 2 * given.cpus, address=cluster.address)
        summary = run_plan(work, store, on_event=lose_a_machine, config=config)
        result["ray_seconds"] = round(time.perf_counter() - started, 1)
        cluster.shutdown()
        started = time.perf_counter()
        run_plan(work, alone)
        result["serial_seconds"] = round(time.perf_counter() - started, 1)
        result["machines_left"] = len(machines)
        result["failed"] = len(summary.failed)
        result["tried_again"] = list(summary.retried.values())
        result["files"] = len(content(alone))
        result["the_same"] = content(store) == content(alone)
    print(json.dumps(result))
    if not result["the_same"] or summary.failed or len(machines) != 1:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
