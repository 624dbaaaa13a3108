"""Rehearsals in a process of their own, which is set up as a worker is: `python -m driftline.engine.rehearsals`.

It reads one JSON line after another from standard input and answers each with another. What a worker needs once, to
start and to read a dataset, is timed on the way. All that is written goes to a folder that is removed in the end.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any

from driftline.engine.blank import lend
from driftline.engine.local import ONE_THREAD, exit_reason
from driftline.engine.rehearse import Cost, rehearse
from driftline.engine.stages import Stage, dataset_for
from driftline.engine.worker import keep_memory
from driftline.jobs import Job
from driftline.store import Store

WARM_UP = 0.2  # the share of a rehearsal's time that goes to one before it


class Rehearsals:
    """A process in which stages are rehearsed, started again if it dies."""

    def __init__(self, where: Path | None, blank: bool = False) -> None:
        """`blank`: stand-ins take the place of all data."""
        self._where, self._blank = where, blank
        self._folder = tempfile.TemporaryDirectory(prefix="driftline-plan-")
        self.store = Store.create(self._folder.name)
        self.start = 0.0
        """Seconds that a worker takes to start."""
        self.spent = 0.0
        """Processor seconds of the process so far."""
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Rehearsals:
        self.start = self._ask({})["seconds"]
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
        self._folder.cleanup()

    def reading(self, stage: Stage) -> float:
        """Seconds that it takes to read the data of a stage."""
        return float(self._ask({"data": stage.job}).get("seconds", 0.0))

    def cost(self, stage: Stage, made_from: Mapping[str, Path], seconds: float, first: bool) -> tuple[Cost, float]:
        """What a stage costs, and what it takes more to do the first one of its kind in a process.

        `made_from`: files that stand for what the stage needs.
        """
        for key, path in made_from.items():
            target = self.store.stage_path(key)
            if path.exists() and not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                _link(target, path)
        told = self._ask({"stage": stage.to_json(), "seconds": seconds, "first": first})
        if "ended" in told:
            return Cost(0.0, 0, 0, trouble=told["ended"]), 0.0
        return Cost(**told["cost"]), told["more"]

    def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
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
            answer: dict[str, Any] = json.loads(line)
            self.spent = answer["spent"]
            return answer
        code = process.wait()
        return {"ended": f"its process ended {exit_reason(code)}"}

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None or self._process.poll() is not None:
            command = [sys.executable, "-m", "driftline.engine.rehearsals", self._folder.name]
            command += [str(self._where or ""), "blank" if self._blank else "true"]
            pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "encoding": "utf-8"}
            self._process = subprocess.Popen(command, env={**os.environ, **ONE_THREAD}, **pipes)
        return self._process


def main() -> None:
    """Answer until the input closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever asks is told, and ends this process
    keep_memory()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a library prints must not mix with the answers

    from driftline.engine.execute import one_thread

    store, where = Store(Path(sys.argv[1])), Path(sys.argv[2]) if sys.argv[2] else None
    with one_thread():
        for line in sys.stdin:
            question = json.loads(line)
            if sys.argv[3] == "blank" and question:
                lend((question.get("data") or json.loads(question["stage"])["job"])["data"])
            answer = {**_answer(question, store, where), "spent": time.process_time()}
            answers.write(json.dumps(answer) + "\n")
            answers.flush()


def _answer(question: dict[str, Any], store: Store, where: Path | None) -> dict[str, Any]:
    if "data" in question:
        began = time.process_time()
        dataset = dataset_for(Job.model_validate(question["data"]), where)
        assert dataset.fingerprint  # which a worker needs as well
        return {"seconds": time.process_time() - began}
    if "stage" not in question:
        return {"seconds": time.process_time()}  # since the process began
    stage, seconds, more = Stage.from_json(question["stage"]), question["seconds"], 0.0
    if question["first"]:
        before = rehearse(stage, store, where, WARM_UP * seconds)
        _forget(stage, store)
    cost = rehearse(stage, store, where, seconds)
    if question["first"]:
        more = max(before.around - cost.around, 0.0)
    return {"cost": asdict(cost), "more": more}


def _link(target: Path, source: Path) -> None:
    """Make `target` stand for `source`; copy where links need a privilege, as on Windows."""
    try:
        target.symlink_to(source.absolute())
    except OSError:
        shutil.copyfile(source, target)


def _forget(stage: Stage, store: Store) -> None:
    """As if a stage had never been rehearsed."""
    store.forget_workings(stage.key)
    shutil.rmtree(store.run_folder(stage.key), ignore_errors=True)
    store.stage_path(stage.key).unlink(missing_ok=True)


if __name__ == "__main__":
    main()
