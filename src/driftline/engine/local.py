"""Worker processes on this machine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from driftline.engine.execute import Interrupted, StageFailed
from driftline.engine.stages import Report, Stage
from driftline.errors import DiskError
from driftline.store import Store

ONE_THREAD = {name: "1" for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")}


class Worker:
    """Computes stages in a process of its own, started when first needed and again if it dies."""

    def __init__(self, store: Store, where: Path | None) -> None:
        self._store = store
        self._where = where
        self._process: subprocess.Popen[str] | None = None
        self._closing = False

    def compute(self, stage: Stage, report: Report) -> None:
        process = self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(stage.to_json() + "\n")
            process.stdin.flush()
        except BrokenPipeError:
            self._died(stage)
        for line in process.stdout:
            answer = json.loads(line)
            if "finished" in answer:
                return
            if "failed" in answer:
                raise StageFailed(answer["failed"])
            if "disk" in answer:
                raise DiskError(answer["disk"])
            report(answer["done"], answer["of"])
        self._died(stage)

    def close(self) -> None:
        """End the process; it notices that its input has closed."""
        self._closing = True
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            self._process.wait()

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None or self._process.poll() is not None:
            command = [sys.executable, "-m", "driftline.engine.worker", str(self._store.folder)]
            command += [str(self._where)] if self._where else []
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, **ONE_THREAD},
            )
        return self._process

    def _died(self, stage: Stage) -> None:
        assert self._process is not None
        code = self._process.wait()
        if self._closing:
            raise Interrupted
        how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
        reason = f"its worker process ended {how}" + (", perhaps for lack of memory" if code == -signal.SIGKILL else "")
        self._store.fail(stage.key, stage.job, reason)
        raise StageFailed(reason)
