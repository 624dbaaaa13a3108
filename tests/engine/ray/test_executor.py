"""On a Ray cluster a plan gives the same records as in this process, whatever becomes of machines and workers."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import yaml

from driftline.device import WORKER_VARIABLE
from driftline.engine.build import DatasetCache
from driftline.engine.executors.base import Event, OnEvent, RunSummary
from driftline.engine.executors.config import ExecutorConfig
from driftline.engine.planning.plan import Plan, merged, plan
from driftline.engine.pool import executors
from driftline.engine.ray.executor import RayExecutor
from driftline.engine.ray.progress import ActiveTask
from driftline.engine.ray.task import _use_reserved_gpu
from driftline.engine.run import as_spec, run_plan
from driftline.engine.stages import StageContext
from driftline.errors import UserError
from driftline.learners.supervised.erm import ERM
from driftline.store.store import Store

from ..stand_ins import run

pytestmark = pytest.mark.xdist_group("ray")
SMALL = {"object_store_memory": 100 * 2**20, "include_dashboard": False}
SOON = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 500, "health_check_failure_threshold": 3}
"""That a machine is lost is noticed within two seconds instead of twenty."""

MINE = """
import os, signal, time
from dataclasses import dataclass
from driftline.learners.supervised.erm import ERM

@dataclass
class Mine(ERM):
    does: str = "nothing"

    def learn(self, x, y):
        super().learn(x, y)
        self.lessons = getattr(self, "lessons", 0) + 1
        if self.lessons != 2:
            return
        print("working in", os.getcwd(), flush=True)
        marker = os.environ.get("MARKER", "")  # set where stages are to wait for the end of their machine, once
        if marker and self.does == "nothing" and not os.path.exists(marker):
            with open(marker + ".part", "w") as file:
                file.write(str(os.getppid()))
            os.rename(marker + ".part", marker)
            time.sleep(1000)
        if self.does == "raise":
            raise RuntimeError("the moon was full")
        if self.does == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.does == "hang":
            time.sleep(1000)
"""


@dataclass
class Twice(ERM):
    """A method that is passed as a class."""

    def learn(self, x: Any, y: Any) -> None:
        super().learn(x, y)
        super().learn(x, y)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A driver's machine without CPUs, and two that work."""
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.setenv("RAY_worker_niceness", "0")  # the tests of another process would starve them
    marker = tmp_path_factory.mktemp("cluster") / "marker"
    monkeypatch.setenv("MARKER", str(marker))
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "_system_config": SOON, **SMALL})
    for _ in range(2):
        made.add_node(num_cpus=1, **SMALL)
    monkeypatch.delenv("MARKER")
    made.marker = marker
    yield made
    ray.shutdown()
    made.shutdown()
    monkeypatch.undo()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the driver's with a user's files, named by paths that mean nothing elsewhere."""
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 255, (200, 16, 16, 1), dtype=np.uint8), np.tile(np.arange(4), 50)
    np.savez(tmp_path / "bands.npz", x=x, y=y, test=np.arange(200) >= 150)
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def timeline(*methods: Any, **output: Any) -> dict[str, Any]:
    data = {"name": "digits", "periods": 4}
    quick = [{"name": method, "updates": 5} if isinstance(method, str) else method for method in methods]
    world = {"resamples": 10, "upstream": 1}
    return {"benchmark": "timeline", "data": data, "model": "linear", "methods": quick, "timeline": world, **output}


def seq_to_final() -> dict[str, Any]:
    settings = {"shifts": "R", "sizes": "60,40", "test": 40, "oracle": 0, "epochs": 1, "batch": 20, "resamples": 20}
    grid = {"lr": 3e-3, "weight_decay": "1e-4", "dropout": 0}
    return {
        "benchmark": "seq-to-final",
        "data": {"name": "npz", "path": "bands.npz"},
        "model": {"name": "conv-1", "width": 2},
        "methods": ["seq-ft"],
        "seeds": 1,
        "seq-to-final": {**settings, **grid},
    }


def refinement() -> dict[str, Any]:
    settings = {
        "episodes": 3,
        "queries_per_episode": 32,
        "period": 2,
        "upstream_set": 64,
        "held_out": 20,
        "upstream_updates": 20,
    }
    return {
        "benchmark": "refinement",
        "data": {"name": "digit-clusters", "train": 300, "copies": 1},
        "model": {"name": "mlp", "width": 16, "depth": 1},
        "methods": [{"name": "er", "epochs": 1}],
        "seeds": 1,
        "refinement": {**settings, "resamples": 20},
    }


def planned(*specs: dict[str, Any]) -> Plan:
    return merged([plan(as_spec(spec)) for spec in specs])


def on(cluster: Any, work: Plan, store: Store, watch: OnEvent = lambda event: None, **how: Any) -> RunSummary:
    return run_plan(work, store, on_event=watch, config=ExecutorConfig("ray", 2, address=cluster.address, **how))


def lose_a_machine(cluster: Any) -> None:
    """End the machine on which a stage waits for it, in the middle of that stage."""
    while not cluster.marker.exists():
        time.sleep(0.1)
    raylet = int(cluster.marker.read_text())
    for node in list(cluster.worker_nodes):
        if raylet in [started.process.pid for of_kind in node.all_processes.values() for started in of_kind]:
            cluster.remove_node(node, allow_graceful=False)


def content(store: Store) -> dict[str, bytes]:
    """All files of all runs but those that say how long it took and where."""
    found = {str(path.relative_to(store.folder)): path for path in store.folder.glob("runs/*/*")}
    return {name: path.read_bytes() for name, path in found.items() if path.name != "runtime.json"}


def test_records_are_the_same_when_a_machine_is_lost_half_way(cluster: Any, here: Path) -> None:
    chosen = {"rule": "oracle", "grid": {"lr": [0.01, 0.001]}, "seeds": 1}
    work = planned(
        timeline("mine.py:Mine", seeds=2),
        timeline("ft", seeds=1, selection=chosen),
        seq_to_final(),
        refinement(),
        timeline({"name": Twice, "updates": 5}, seeds=1),
    )
    alone, store = Store.create(here / "serial"), Store.create(here / "ray")
    assert not run_plan(work, alone).failed
    events: list[Event] = []
    accident = threading.Thread(target=lose_a_machine, args=(cluster,), daemon=True)
    accident.start()
    summary = on(cluster, work, store, events.append)
    assert not summary.failed
    assert len(summary.computed) == len(work.stages), "nothing is left out"
    assert len(cluster.worker_nodes) == 1
    ((lost, reasons),) = summary.retried.items()
    assert "mine.py:Mine" in next(stage.title for stage in work.stages if stage.key == lost)
    assert "its machine was lost" in reasons[0]
    assert content(store) == content(alone)
    assert any(event.kind == "advanced" for event in events), "tasks tell about their progress"
    printed = [path.read_text() for path in (store.folder / "logs").glob("*.txt")]
    assert len(printed) == 2
    assert all(text.startswith("working in ") and str(here) not in text for text in printed)
    assert all('"node"' in path.read_text() for path in store.folder.glob("runs/*/runtime.json"))


def rooms() -> set[Path]:
    """What sweeps on Ray have left in this machine's temporary folder."""
    return set(Path(tempfile.gettempdir()).glob("driftline-" + 32 * "[0-9a-f]"))


def mine(*does: str, **output: Any) -> dict[str, Any]:
    """Runs of a model for which workers need not load torch's optimizers, which takes seconds each time."""
    methods = ({"name": "mine.py:Mine", "does": what} for what in does)
    return timeline(*methods, model="logistic-regression", seeds=1, **output)


def test_a_stage_that_raises_dies_or_hangs_fails_with_its_reason(cluster: Any, here: Path) -> None:
    work, store, before = planned(mine("raise", "die")), Store.create(here / "ray"), rooms()
    summary = on(cluster, work, store, retries=1)
    raised, died = (summary.failed[key] for key in work.run_keys)
    assert raised == "RuntimeError: the moon was full"
    assert died == "its worker process died, or its machine was lost, 2 times"
    assert len(summary.computed) == 1, "the upstream model that they share"
    assert "mine.py" in store.failure(work.run_keys[0])["traceback"]
    work = planned(mine("hang"))
    (key,) = work.run_keys
    hung = on(cluster, work, store, timeout=10)  # a sweep of its own: a slow start of the others is not a timeout
    assert hung.failed == {key: "it took longer than the 10 s that --timeout allows"}
    assert "working in " in store.log_path(key).read_text(), "what it printed"
    assert "mine.py" in store.failure(key)["traceback"], "where it hung"
    assert rooms() == before, "its worker was killed, and its files are gone all the same"


def test_what_another_driver_is_at_is_not_computed_twice(cluster: Any, here: Path) -> None:
    work = planned({**timeline("erm", seeds=1), "timeline": {"resamples": 10}})
    (stage,) = work.stages
    alone, store = Store.create(here / "serial"), Store.create(here / "ray")
    run_plan(work, alone)
    with executors(ExecutorConfig("ray", 1, address=cluster.address), store, DatasetCache()) as hands:
        answers: list[bool] = []
        waiting = threading.Thread(target=lambda: answers.append(hands[0].submit(stage, lambda done, total: None)))
        with store.lock(stage.key):
            waiting.start()
            waiting.join(1)
            assert waiting.is_alive()
            shutil.copytree(alone.run_folder(stage.key), store.work_folder("elsewhere"))
            store.commit(stage.key, store.work_folder("elsewhere"))
        waiting.join(60)
    assert answers == [False]


def test_more_than_any_machine_has_is_refused(cluster: Any, tmp_path: Path) -> None:
    asking = ExecutorConfig("ray", address=cluster.address, gpus=8)
    with (
        pytest.raises(UserError, match=r"no machine .* --gpus .* 0 GPUs"),
        executors(asking, Store(tmp_path), DatasetCache()),
    ):
        pass


def test_a_worker_with_a_gpu_serves_one_task(cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker's second task may have another GPU, but CUDA stays on the one it started with."""
    monkeypatch.setattr("driftline.engine.ray.executor._check_resources", lambda *_: None)
    for gpus, calls in ((0.5, 1), (0.0, 0)):
        config = ExecutorConfig("ray", jobs=1, address=cluster.address, gpus=gpus)
        with executors(config, Store(tmp_path), DatasetCache()) as (hand,):
            options = hand.task._default_options  # type: ignore[attr-defined]
        assert (options.get("num_gpus", 0), options.get("max_calls", 0)) == (gpus, calls)


@pytest.mark.parametrize(("reserved", "expected"), [([1], "1"), (["3"], "3"), (["GPU-8e0f"], "0"), ([], None)])
def test_a_task_takes_the_gpu_that_ray_reserved(
    reserved: list[Any], expected: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(WORKER_VARIABLE, "7")  # so that it is restored in the end
    monkeypatch.delenv(WORKER_VARIABLE)
    monkeypatch.setattr(pytest.importorskip("ray"), "get_gpu_ids", lambda: reserved)
    _use_reserved_gpu()
    assert os.environ.get(WORKER_VARIABLE) == expected


def test_why_a_task_was_lost_is_said_in_a_sentence(tmp_path: Path) -> None:
    kinds = pytest.importorskip("ray.exceptions")
    hand = RayExecutor(sys.modules["ray"], None, None, SimpleNamespace(closing=False), StageContext(Store(tmp_path)), 2)  # type: ignore[arg-type]
    call = ActiveTask(run("k"), lambda done, total: None, None)
    full = hand._lost(call, kinds.OutOfMemoryError("Task was killed due to the node running low on memory."))
    assert str(full) == "its machine ran out of memory: ask for more with --memory, or run fewer with --jobs"
    assert str(hand._lost(call, kinds.ObjectLostError("00", "here", "stack"))) == "its machine was lost"
    assert "RaySystemError: System error: odd" in str(hand._lost(call, kinds.RaySystemError("odd")))


def test_the_log_of_an_earlier_attempt_is_not_that_of_a_stage_that_said_nothing(tmp_path: Path) -> None:
    ray, store = pytest.importorskip("ray"), Store.create(tmp_path)
    line: Any = SimpleNamespace(closing=False, timeout=5.0)
    hand = RayExecutor(ray, None, None, line, StageContext(store), 2)  # type: ignore[arg-type]
    store.log_path("k").parent.mkdir()
    store.log_path("k").write_text("long ago")
    for words, output in (("", ""), ("just now", "the end of its log:\njust now")):
        call = ActiveTask(run("k"), lambda done, total: None, None, overdue=True, final_log=words)
        hand._lost(call, ray.exceptions.RayError())
        assert store.failure("k")["traceback"] == output


def test_without_an_address_a_cluster_is_started_and_ctrl_c_ends_it(here: Path) -> None:
    pytest.importorskip("ray")
    spec = mine("nothing", "hang", timeline={"resamples": 10})
    (here / "spec.yaml").write_text(yaml.safe_dump(spec))
    command = [sys.executable, "-m", "driftline", "run", "spec.yaml", "--engine", "ray", "--jobs", "2"]
    short = tempfile.mkdtemp(dir="/tmp")  # names of sockets may not be long
    environment = {key: value for key, value in os.environ.items() if key != "RAY_ADDRESS"} | {"RAY_TMPDIR": short}
    environment["RAY_worker_niceness"] = "0"
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    assert process.stderr is not None
    output = []
    for line in process.stderr:
        output.append(line)
        if "Mine" in line and "finished" in line:
            process.send_signal(signal.SIGINT)
    assert process.wait() == 130, "".join(output)
    assert "resumes" in output[-1]
    left = subprocess.run(["pgrep", "-f", short], capture_output=True, text=True).stdout
    shutil.rmtree(short)
    assert not left, "no process of the cluster stays"


def test_a_map_keeps_the_order_saves_each_result_and_passes_on_sentences(cluster: Any) -> None:
    from driftline.engine.ray.map import ray_map

    shared = np.arange(1000)

    def work(item: int) -> int:
        if item > 5:
            raise UserError(f"{item} is too large")
        return int(shared[item] * 10)

    saved: dict[int, int] = {}
    config, counts = ExecutorConfig("ray", address=cluster.address), list[int]()
    found = ray_map(work, [3, 1, 2], config, lambda item, count: counts.append(count), saved.__setitem__)
    assert found == [30, 10, 20]
    assert saved == {3: 30, 1: 10, 2: 20}
    assert counts == [1, 2, 3]
    with pytest.raises(UserError, match="7 is too large"):
        ray_map(work, [7], config, lambda item, count: None, saved.__setitem__)
