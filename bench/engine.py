"""Overhead of the engine: per stage, for a finished sweep, and in memory as streams grow.

    python bench/engine.py [stages|rerun|memory]

stages  2,000 stages of a millisecond on two workers. The overhead is locking, checking the data, safe
        writing and reporting. Once on the disk, once in memory (/dev/shm), where flushing is free.
rerun   `driftline run` on a sweep of 5,000 finished runs, from the command line, against a bare `import torch`. The
        store is filled with copies of a few real runs.
memory  the largest size of the driver while workers take a method through a stream, and through one ten times as long.

Seconds are also given as those of the processors, which do not depend on what else the machine is doing.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from driftline.engine.build import DatasetCache
from driftline.engine.executors import worker
from driftline.engine.executors.config import ExecutorConfig
from driftline.engine.executors.local import LocalExecutor
from driftline.engine.executors.scheduler import schedule
from driftline.engine.planning.plan import plan
from driftline.engine.run import as_spec, run_plan
from driftline.engine.stages import Pretrain, Stage, StageContext, StreamRun
from driftline.io import serialization
from driftline.record.card import write_card
from driftline.spec import Spec, parse
from driftline.spec.keys import pretrain_key
from driftline.store.store import Store

MILLISECOND = 0.001
SMALL: dict[str, Any] = {
    "benchmark": "timeline",
    "data": {"name": "digits", "periods": 4},
    "model": "linear",
    "timeline": {"resamples": 10},
}


def busy(*_: Any) -> None:
    """A millisecond of work."""
    until = time.perf_counter() + MILLISECOND
    while time.perf_counter() < until:
        pass


def quick_stage(stage: Stage, context: StageContext) -> None:
    """Instead of training: a millisecond, and a small result."""
    busy()
    serialization.save({"model": {}, "macs": None}, context.store.stage_path(stage.key))


class QuickWorker(LocalExecutor):
    """A worker whose stages take a millisecond."""

    command = (sys.executable, __file__, "--worker")


def per_stage(n: int, beside: str | None) -> None:
    """`beside`: the folder in which the store is made."""
    jobs = parse({**SMALL, "methods": ["erm"], "seeds": n}).jobs(default_model="linear")
    fingerprint = DatasetCache().load(jobs[0].data).fingerprint
    planned = [Pretrain(pretrain_key(job, fingerprint), job) for job in jobs]
    (last,) = plan(as_spec({**SMALL, "methods": ["erm"]})).stages
    assert isinstance(last, StreamRun)
    with tempfile.TemporaryDirectory(dir=beside) as folder:
        store = Store.create(folder)
        workers = [QuickWorker(store, None) for _ in range(2)]
        for one in workers:  # both are up and have read the data
            schedule([last], store, [one])
        before = [processor_seconds(one) for one in workers]
        began, driver = time.perf_counter(), time.process_time()
        schedule([*planned, replace(last, fits=tuple(stage.key for stage in planned))], store, list(workers))
        seconds, driver = time.perf_counter() - began, time.process_time() - driver
        spent = sum(processor_seconds(one) for one in workers) - sum(before)
        for one in workers:
            one.close()
    each = 1e3 * (2 * seconds / n - MILLISECOND)
    print(f"{n:,} stages of 1 ms on two workers in {beside or 'the usual place'}: {seconds:.2f} s")
    used = 1e3 * (spent + driver) / n - 1
    added = 1e3 * (seconds / n - MILLISECOND / 2)
    print(
        f"  each adds {added:.2f} ms to the sweep: {each:.2f} ms to its worker's time, {used:.2f} ms to the processors'"
    )


def processor_seconds(one: LocalExecutor) -> float:
    """What a worker has used so far."""
    assert one._process is not None
    fields = Path(f"/proc/{one._process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def filled_store(spec: Spec, folder: Path) -> int:
    """A store in which all runs of a spec are finished: real ones for the first seed, copies of them for the others."""
    store = Store.create(folder)
    run_plan(plan(spec.model_copy(update={"seeds": spec.seeds[:1]})), store, ExecutorConfig(jobs=2))
    made = {run.card.label: run for run in store.record().runs}
    planned = plan(spec)
    for stage in planned.stages:
        if not stage.is_done(store):
            source, target = made[stage.job.label], store.run_folder(stage.key)
            shutil.copytree(source.folder, target)
            run = source.card.run.model_copy(update={"seed": stage.job.seed})
            write_card(target, source.card.model_copy(update={"key": stage.key, "run": run}))
    return len(planned.run_keys)


def timed(command: list[str]) -> tuple[float, float]:
    """Seconds, and seconds of the processors, of a command."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - began, spent


def rerun(n: int) -> None:
    methods = [{"name": "erm", "updates": k} for k in range(1, 11)]
    spec = parse({**SMALL, "methods": methods, "seeds": n // 10})
    with tempfile.TemporaryDirectory() as folder:
        recipe = Path(folder, "recipe.yaml")
        recipe.write_text(spec.to_yaml(), encoding="utf-8")
        runs = filled_store(spec, Path(folder, "store"))
        command = [sys.executable, "-m", "driftline", "run", str(recipe), "--runs", str(Path(folder, "store"))]
        timed(command)
        (wall, spent), (bare, bare_spent) = (
            min(timed(line) for _ in range(3)) for line in (command, [sys.executable, "-c", "import torch"])
        )
    print(f"a sweep of {runs:,} finished runs returns in {wall:.2f} s ({spent:.2f} s of the processors)")
    print(f"  {wall / bare:.2f} x `import torch`, which takes {bare:.2f} s ({bare_spent:.2f} s)")


def memory() -> None:
    """Print the peak memory of a forked driver; what it inherits from this process is the same for both streams."""
    for images in (2_000, 20_000):
        stream = {
            "order": "gradual",
            "corruptions": "contrast",
            "images": images,
            "images_per_point": 64,
            "upstream_updates": 1,
        }
        spec = {"benchmark": "test-time", "data": "color-digits", "model": "res-1", "methods": ["frozen"]}
        planned = plan(as_spec({**spec, "test-time": stream}))
        with tempfile.TemporaryDirectory() as folder:
            child = os.fork()
            if child == 0:
                failed = run_plan(planned, Store.create(folder), config=ExecutorConfig("local", 1)).failed
                os._exit(len(failed))
            _, status, used = os.wait4(child, 0)
            assert status == 0
            rows = Store.open(folder).query("select count(*) as n from answers")["n"][0]
        print(f"a stream of {rows:,} answers: the driver's largest size is {used.ru_maxrss / 1024:.1f} MB", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="?", choices=["stages", "rerun", "memory"])
    parser.add_argument("--stages", type=int, default=2000)
    parser.add_argument("--runs", type=int, default=5000)
    given = parser.parse_args()
    if given.what in (None, "stages"):
        per_stage(given.stages, None)
        per_stage(given.stages, "/dev/shm")
    if given.what in (None, "rerun"):
        rerun(given.runs)
    if given.what in (None, "memory"):
        memory()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        Pretrain.compute, StreamRun.compute = quick_stage, busy  # type: ignore[method-assign, assignment]
        del sys.argv[1]
        worker.main()
    else:
        main()
