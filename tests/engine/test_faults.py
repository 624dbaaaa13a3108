"""Stages that hang, die or eat all memory fail alone, with the reason; what is tried again ends the same."""

from __future__ import annotations

import io
import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import driftline
from driftline.engine.executors import local, logs
from driftline.engine.executors.base import Event, StageFailed, WorkerLost
from driftline.engine.executors.local import LocalExecutor
from driftline.engine.executors.scheduler import schedule
from driftline.engine.planning.plan import plan
from driftline.engine.ray import progress
from driftline.engine.run import as_spec, run_plan
from driftline.engine.stages import Fit, Stage, StreamRun
from driftline.errors import ClusterLost
from driftline.store.store import Store
from driftline.types import OnProgress

from .forked import ForkedWorker
from .stand_ins import job, pretraining

MINE = """
import os, signal, time
from dataclasses import dataclass
from pathlib import Path
import numpy as np
from driftline.learners.supervised.ft import FineTune

@dataclass
class Mine(FineTune):
    trouble: str = ""
    mark: str = ""

    def learn(self, x, y):
        super().learn(x, y)
        if self.training_rounds != 3 or (Path(self.mark) / self.trouble).exists():
            return
        print("about to", self.trouble)
        (Path(self.mark) / self.trouble).write_text("it happens once")
        if self.trouble == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        elif self.trouble == "hang":
            hang()
        elif self.trouble == "eat":
            np.zeros(1 << 50)

def hang():
    while True:
        time.sleep(1)
"""


def spec(folder: Path) -> dict[str, Any]:
    troubles = [
        {"name": f"{folder}/mine.py:Mine", "updates": 5, "trouble": trouble, "mark": f"{folder}/marks"}
        for trouble in ("die", "hang", "eat")
    ]
    return {
        "benchmark": "timeline",
        "data": {"name": "digits", "periods": 6},
        "model": "linear",
        "methods": [*troubles, {"name": "erm", "updates": 5}, {"name": "erm-all", "updates": 5}],
        "timeline": {"resamples": 10},
    }


def contents(folder: Path) -> dict[str, bytes]:
    found = [path for path in folder.glob("runs/*/*") if path.name != "runtime.json"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(found)}


def test_death_hanging_and_hunger(tmp_path: Path) -> None:
    (tmp_path / "marks").mkdir()
    (tmp_path / "mine.py").write_text(MINE)
    planned, store = plan(as_spec(spec(tmp_path))), Store.create(tmp_path / "store")
    stages = dict(zip(("die", "hang", "eat", "erm", "erm-all"), planned.stages, strict=True))
    patience = 2 + 4 * _seconds(stages["erm"], store)  # nothing but what hangs takes so long, also on a busy machine
    workers = [ForkedWorker(store, None, timeout=patience) for _ in range(2)]
    revealed: list[Event] = []
    try:
        summary = schedule(planned.stages, store, list(workers), revealed.append)
    finally:
        for worker in workers:
            worker.close()

    assert {stage.key for stage in summary.computed} == {stages["die"].key, stages["erm-all"].key}
    died = "its worker process ended by SIGKILL, perhaps for lack of memory"
    assert summary.retried == {stages["die"].key: [died]}
    assert [(event.stage.key, event.reason) for event in revealed if event.kind == "retried"] == [
        (stages["die"].key, died)
    ]
    assert summary.failed[stages["hang"].key].startswith(f"it was not done after {patience:g} s")
    assert summary.failed[stages["eat"].key].startswith("out of memory: Unable to allocate")
    failures = {failure["key"]: failure for failure in store.failures()}
    assert set(failures) == set(summary.failed)
    assert "in hang" in failures[stages["hang"].key]["traceback"], "where it hung is kept"
    logs = {path.stem: path.read_text() for path in (tmp_path / "store" / "logs").iterdir()}
    assert logs[stages["die"].key] == "about to die\n"
    assert stages["erm"].key not in logs, "it printed nothing"

    resumed = run_plan(planned, store)  # the marks are there, so that all goes well
    assert {stage.key for stage in resumed.computed} == {stages["hang"].key, stages["eat"].key}
    assert store.failures() == []
    driftline.run(spec(tmp_path), runs=tmp_path / "peace")
    assert contents(tmp_path / "store") == contents(tmp_path / "peace")


def _seconds(stage: Stage, store: Store) -> float:
    """How long a stage takes on a worker."""
    began, worker = time.monotonic(), ForkedWorker(store, None)
    schedule([stage], store, [worker])
    worker.close()
    return time.monotonic() - began


class Scripted:
    """An executor that does what it is told."""

    broken: Exception | None = None

    def __init__(self, retries: int = 2, **answers: list[Exception | bool]) -> None:
        self.retries = retries
        self.answers = answers
        self.seen: list[str] = []

    in_process = False

    def submit(self, stage: Stage, on_progress: OnProgress) -> bool:
        self.seen.append(stage.key)
        answer = self.answers.get(stage.key, [True]).pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def stage(key: str, needs: tuple[str, ...] = ()) -> Stage:
    return StreamRun(key, job(key), fits=needs)


def test_a_worker_that_is_lost_is_replaced_as_often_as_was_said(tmp_path: Path) -> None:
    store = Store.create(tmp_path)
    hands = Scripted(1, a=[WorkerLost("x"), True], b=[WorkerLost("x"), WorkerLost("y")], c=[WorkerLost("x")] * 2)
    summary = schedule([stage("a"), stage("b"), stage("c"), stage("d")], store, [hands])
    assert hands.seen == ["a", "a", "b", "b", "c", "c", "d"]
    assert [done.key for done in summary.computed] == ["a", "d"]
    assert summary.failed == {"b": "x; then y", "c": "x, 2 times"}
    assert summary.retried == {"a": ["x"], "b": ["x"], "c": ["x"]}
    assert {failure["key"]: failure["reason"] for failure in store.failures()} == summary.failed


def test_what_another_process_has_done_counts_as_reused(tmp_path: Path) -> None:
    summary = schedule([stage("a"), stage("b")], Store.create(tmp_path), [Scripted(a=[False])])
    assert ([s.key for s in summary.reused], [s.key for s in summary.computed]) == (["a"], ["b"])


def test_a_failure_reaches_all_that_need_it_and_no_other(tmp_path: Path) -> None:
    up, fit, other = pretraining("up"), Fit("fit", job("fit"), "", "fit", ("up",)), pretraining("other")
    runs = [stage("a", needs=("fit",)), stage("b", needs=("up", "other")), stage("c", needs=("other",))]
    hands = Scripted(up=[StageFailed("no")])
    summary = schedule([up, fit, other, *runs], Store.create(tmp_path), [hands])
    assert hands.seen == ["up", "other", "c"]
    needed = "a stage it needs failed: no"
    assert summary.failed == {"up": "no", "fit": needed, "a": needed, "b": needed}


def test_an_executor_that_breaks_ends_the_sweep_while_its_stage_still_waits(tmp_path: Path) -> None:
    over = threading.Event()

    class Waiting(Scripted):
        def submit(self, stage: Stage, on_progress: OnProgress) -> bool:
            self.broken = ClusterLost()  # from now on no stage will end
            over.wait(60)
            return True

    try:
        with pytest.raises(ClusterLost, match=r"no longer answers\. .* the same command resumes"):
            schedule([stage("a")], Store.create(tmp_path), [Waiting()])
        assert not over.is_set()
    finally:
        over.set()


def test_a_head_that_does_not_answer_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "POLL_INTERVAL", 0.01)
    monkeypatch.setattr(progress, "HEAD_TIMEOUT", 0.1)
    with socket.socket() as head:
        head.bind(("127.0.0.1", 0))
        head.listen()
        address = f"127.0.0.1:{head.getsockname()[1]}"
        context = SimpleNamespace(gcs_address=address, get_node_id=lambda: "node")
        near = SimpleNamespace(NodeAffinitySchedulingStrategy=lambda *_, **__: None)
        actor = SimpleNamespace(take=SimpleNamespace(remote=lambda: None))
        ray: Any = SimpleNamespace(
            get_runtime_context=lambda: context,
            util=SimpleNamespace(scheduling_strategies=near),
            remote=lambda **_: lambda _: SimpleNamespace(remote=lambda: actor),
            exceptions=SimpleNamespace(RayError=ValueError),
            get=lambda *_, **__: ({}, {}),
        )
        line = progress.ProgressMonitor(ray, None)
        time.sleep(0.3)
        assert line.lost is None
    line._thread.join(10)
    assert isinstance(line.lost, ClusterLost)


def test_a_log_has_a_limit_and_keeps_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "MAX_BYTES", 1000)
    store = Store.create(tmp_path)
    with logs.redirect(store, "k"):
        for number in range(1000):
            os.write(1, f"line {number}\n".encode())
    kept = store.log_path("k").read_bytes()
    assert kept.startswith(logs.TRUNCATION_NOTICE)
    assert kept.endswith(b"line 998\nline 999\n")
    assert len(kept) <= 1000


def test_a_limit_on_file_sizes_ends_a_sweep_like_a_full_disk(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource", reason="this system has no limit on file sizes")
    from multiprocessing import get_context

    def limited(output: Any) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
        content = {"benchmark": "timeline", "data": {"name": "digits", "periods": 3}, "timeline": {"resamples": 10}}
        try:
            driftline.run(
                {**content, "model": "logistic-regression", "methods": ["erm"], "seeds": 2}, runs=tmp_path / "runs"
            )
        except Exception as error:
            output.send((type(error).__name__, str(error)))

    received, output = get_context("fork").Pipe()
    process = get_context("fork").Process(target=limited, args=(output,))
    process.start()
    assert received.poll(120)
    kind, sentence = received.recv()
    process.join()
    assert kind == "DiskError"
    assert "the file would be larger than the system allows" in sentence
    assert Store.open(tmp_path / "runs").failures() == [], "no stage has failed: the sweep was stopped"


def test_an_error_in_one_thread_is_raised_while_another_still_computes(tmp_path: Path) -> None:
    over = threading.Event()

    class Slow(Scripted):
        def submit(self, stage: Stage, on_progress: OnProgress) -> bool:
            over.wait(60)
            return True

    bug = ZeroDivisionError("a bug")
    try:
        with pytest.raises(ZeroDivisionError):
            schedule([stage("a"), stage("b")], Store.create(tmp_path), [Slow(), Scripted(a=[bug], b=[bug])])
        assert not over.is_set()
    finally:
        over.set()


def test_what_the_dead_left_is_tidied_and_what_the_living_do_is_not(tmp_path: Path) -> None:
    store = Store.create(tmp_path)
    for folder in ("stages", "locks", "work/unfinished", "work/done", "runs/done"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "runs/done/card.json").write_text("{}")
    for name in ("stages/.dead.safetensors.0a1b", "stages/.alive.safetensors.0a1b", "stages/whole.safetensors"):
        (tmp_path / name).write_text("")
    (tmp_path / "locks/dead").write_text("")
    with store.lock("alive"):
        store.clean_up()
        assert sorted(path.name for path in (tmp_path / "stages").iterdir()) == [
            ".alive.safetensors.0a1b",
            "whole.safetensors",
        ]
        assert [path.name for path in (tmp_path / "work").iterdir()] == ["unfinished"]
        assert [path.name for path in (tmp_path / "locks").iterdir()] == ["alive"]
    assert not list((tmp_path / "locks").iterdir()), "a lock that is let go of is gone"


def test_a_lock_that_was_removed_is_not_held_twice(tmp_path: Path) -> None:
    store, inside, most = Store.create(tmp_path), [0], [0]

    def enter() -> None:
        for _ in range(30):
            with store.lock("key"):
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                time.sleep(0.0005)
                inside[0] -= 1

    threads = [threading.Thread(target=enter) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]


def test_setting_the_clock_changes_no_duration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jumps = iter(range(10**9, 0, -(10**6)))
    monkeypatch.setattr(time, "time", lambda: float(next(jumps)))  # every look at the clock finds it set back
    small = {**spec(tmp_path), "methods": [{"name": "erm", "updates": 5}], "data": {"name": "digits", "periods": 3}}
    store, planned = Store.create(tmp_path), plan(as_spec(small))
    assert not run_plan(planned, store).failed
    monkeypatch.undo()
    from json import loads

    from driftline.engine.executors.status import read_statuses

    ((sweep, _),) = read_statuses(store)
    ran = loads((store.run_folder(planned.run_keys[0]) / "runtime.json").read_text())["seconds"]
    assert 0 < ran <= sweep.durations["run"][1] < 600


class Mortal:
    """A process that has finished its stage just when its time is up."""

    code: int | None = None

    def __init__(self) -> None:
        self.stdout = io.StringIO()

    def poll(self) -> int | None:
        return self.code

    def send_signal(self, which: int) -> None: ...

    def kill(self) -> None:
        self.code = -9

    def wait(self) -> int | None:
        return self.code


def test_a_worker_that_is_about_to_be_killed_gets_no_further_stage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker, process = LocalExecutor(Store(tmp_path), None, timeout=0.01), Mortal()
    worker._process = process  # type: ignore[assignment]

    def conversation(*_: Any) -> Iterator[dict[str, Any]]:
        yield {"done": 0, "total": 0}
        time.sleep(0.1)  # the clock has gone off, and the process has its last words
        yield {"finished": "k", "computed": True}

    monkeypatch.setattr(local, "_exchange", conversation)
    assert worker.submit(stage("k"), lambda done, total: None)
    assert process.code == -9, "the next stage finds it dead and starts another"
