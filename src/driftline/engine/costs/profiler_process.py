"""Profiling in a separate process, set up as a worker is: `python -m driftline.engine.costs.profiler_process`.

It reads JSON lines from standard input and answers each with another. It also times what a worker does once: to start
and to read a dataset. Everything is written to a folder that is removed at the end.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from types import TracebackType

from driftline.engine.build import DatasetCache
from driftline.engine.costs.profiler import Cost, profile_stage
from driftline.engine.executors.local import ONE_THREAD, exit_reason
from driftline.engine.executors.process import keep_freed_memory, one_thread
from driftline.engine.stages import Stage
from driftline.io import user_objects
from driftline.spec.settings import Choice
from driftline.store.store import Store
from driftline.types import JsonObject

WARM_UP_SHARE = 0.2  # the share of a profile's time for one before it


class ProfilerProcess:
    """A process that profiles stages, started again if it dies."""

    command: tuple[str, ...] = (sys.executable, "-m", "driftline.engine.costs.profiler_process")

    def __init__(self, data_dir: Path | None) -> None:
        self._data_dir = data_dir
        self._folder = tempfile.TemporaryDirectory(prefix="driftline-plan-")
        self.store = Store.create(self._folder.name)
        self.start = 0.0
        """Seconds until a worker is ready."""
        self.spent = 0.0
        """CPU seconds of the process so far."""
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> ProfilerProcess:
        self.start = self._ask({})["seconds"]
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
        self._folder.cleanup()

    def reading(self, stage: Stage) -> float:
        """Return the seconds that it takes to read the data of a stage."""
        return float(self._ask({"data": stage.job.data.short()}).get("seconds", 0.0))

    def cost(self, stage: Stage, inputs: Mapping[str, Path], seconds: float, first: bool) -> tuple[Cost, float]:
        """Return what a stage costs, and how many seconds more the first one of its kind takes in a process.

        `inputs`: files that stand in for the results that the stage needs.
        """
        for key, path in inputs.items():
            target = self.store.stage_path(key)
            if path.exists() and not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                _link(target, path)
        answer = self._ask({"stage": stage.to_json(), "seconds": seconds, "first": first})
        if "ended" in answer:
            return Cost(0.0, 0, 0, error=answer["ended"]), 0.0
        return Cost(**answer["cost"]), answer["more"]

    def _ask(self, question: JsonObject) -> JsonObject:
        process = self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(question) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if line:
            answer: JsonObject = json.loads(line)
            self.spent = answer["spent"]
            return answer
        code = process.wait()
        return {"ended": f"its process ended {exit_reason(code)}"}

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None or self._process.poll() is not None:
            command = [*self.command, self._folder.name, str(self._data_dir or "")]
            pipes: JsonObject = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "encoding": "utf-8"}
            self._process = subprocess.Popen(command, env={**os.environ, **ONE_THREAD}, **pipes)
            assert self._process.stdin is not None
            self._process.stdin.write(base64.b64encode(user_objects.dumps()).decode() + "\n")
        return self._process


def main(datasets: DatasetCache | None = None) -> None:
    """Answer until the input closes; `datasets`: what to use in place of the data folder."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that asks handles it, and ends this one
    keep_freed_memory()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a library prints must not mix with the answers

    store = Store(Path(sys.argv[1]))
    datasets = datasets or DatasetCache(Path(sys.argv[2]) if sys.argv[2] else None)
    with one_thread():
        user_objects.receive(base64.b64decode(sys.stdin.readline()))
        for line in sys.stdin:
            answer = {**_handle(json.loads(line), store, datasets), "spent": time.process_time()}
            answers.write(json.dumps(answer) + "\n")
            answers.flush()


def _handle(question: JsonObject, store: Store, datasets: DatasetCache) -> JsonObject:
    if "data" in question:
        began = time.process_time()
        assert datasets.load(Choice.model_validate(question["data"])).fingerprint  # which a worker needs as well
        return {"seconds": time.process_time() - began}
    if "stage" not in question:
        return {"seconds": time.process_time()}  # since the process began
    stage, seconds, marks = Stage.from_json(question["stage"]), question["seconds"], [time.process_time()]
    if question["first"]:
        profile_stage(stage, store, datasets, WARM_UP_SHARE * seconds)
        _remove_result(stage, store)
        marks.append(time.process_time())
    cost = profile_stage(stage, store, datasets, seconds)
    marks.append(time.process_time())
    return {"cost": asdict(cost), "more": one_time_seconds(marks)}


def one_time_seconds(marks: Sequence[float]) -> float:
    """Return how much longer a profile took before the same one with more time, given the times before and after each.

    >>> one_time_seconds([0.0, 5.0, 7.0]), one_time_seconds([0.0, 1.0, 7.0]), one_time_seconds([0.0, 5.0])
    (3.0, 0.0, 0.0)
    """
    first, *others = (after - before for before, after in pairwise(marks))
    return max(first - sum(others), 0.0) if others else 0.0


def _link(target: Path, source: Path) -> None:
    """Make `target` stand for `source`; copy where links need a privilege, as on Windows."""
    try:
        target.symlink_to(source.absolute())
    except OSError:
        shutil.copyfile(source, target)


def _remove_result(stage: Stage, store: Store) -> None:
    """Remove everything that a stage wrote."""
    store.remove_work_folder(stage.key)
    shutil.rmtree(store.run_folder(stage.key), ignore_errors=True)
    store.stage_path(stage.key).unlink(missing_ok=True)


if __name__ == "__main__":
    main()
