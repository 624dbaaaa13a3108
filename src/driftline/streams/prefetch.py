"""Prefetching: the next steps of a stream are made while the learner works on the current one.

By default a thread makes them, and nothing is copied. Processes pay for a fast learner, because Python's interpreter
lock is held for a quarter of the time with images of 224 pixels, and for longer with smaller ones. They return images
in shared memory. A step depends on its number alone, so threads and processes make the same steps.
"""

from __future__ import annotations

import logging
import math
import os
import sys
import threading
import time
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from functools import partial

from driftline import parallel
from driftline.errors import UserError
from driftline.types import Step, Stream

WAITING_SHARE, WAITING_SECONDS = 0.2, 10.0
"""Thresholds of the advice on waiting: share of the time, and seconds."""
log = logging.getLogger("driftline")


class Prefetched:
    """A stream whose next steps, two per worker, are computed ahead."""

    def __init__(self, stream: Stream, workers: int) -> None:
        self.stream = stream
        self.waited = 0.0
        """Seconds in which the next step was not ready."""
        self._workers = workers if sys.platform == "linux" else 0
        self._futures: dict[int, Future[Step]] = {}
        self._lock = threading.Lock()
        self._pool: Executor
        if self._workers:
            import torch.multiprocessing  # noqa: F401  # from here on, tensors are sent in shared memory

            self._pool = parallel.forked_pool(partial(_make_shared, stream), self._workers)
        else:
            self._pool = ThreadPoolExecutor(1, thread_name_prefix="ahead")

    def __len__(self) -> int:
        return len(self.stream)

    def __getitem__(self, index: int) -> Step:
        index, began = range(len(self))[index], time.perf_counter()
        with self._lock:
            wanted = range(index, min(index + 2 * max(1, self._workers) + 1, len(self)))
            for other in [known for known in self._futures if known not in wanted]:
                self._futures.pop(other).cancel()
            for number in wanted:
                if number not in self._futures:
                    self._futures[number] = self._submit(number)
            future = self._futures[index]
        try:
            step = future.result()
        except BrokenProcessPool:
            raise UserError(
                "a process that makes images was killed, perhaps for lack of memory: use fewer with "
                f"--set device.workers={self._workers - 1}"
            ) from None
        self.waited += time.perf_counter() - began
        return _with_array(step) if self._workers else step

    def _submit(self, index: int) -> Future[Step]:
        if self._workers:
            return self._pool.submit(parallel.run_in_worker, index)
        return self._pool.submit(self.stream.__getitem__, index)

    def report_waiting(self, seconds: float) -> None:
        """Log a note if much of the `seconds` for which the stream was followed was spent on waiting for its steps."""
        share = self.waited / seconds
        if share < WAITING_SHARE or self.waited < WAITING_SECONDS:
            return
        needed = min(math.ceil(max(1, self._workers) / max(1 - share, 0.01)), os.cpu_count() or 1)
        more = (
            f"--set device.workers={needed} makes them in {needed} processes"
            if needed > self._workers
            else "no CPU is left"
        )
        log.warning(f"note: the method waited for images {share:.0%} of the time: {more}")

    def close(self) -> None:
        """Make no further step, and wait for a thread: a process that is forked later would keep the locks it holds."""
        self._pool.shutdown(wait=not self._workers, cancel_futures=True)


def _make_shared(stream: Stream, index: int) -> Step:
    """Return a step with its images in a tensor, which is sent to another process in shared memory."""
    import torch

    step = stream[index]
    return replace(step, samples=replace(step.samples, x=torch.from_numpy(step.samples.x)))


def _with_array(step: Step) -> Step:
    return replace(step, samples=replace(step.samples, x=step.samples.x.numpy()))


def prefetch(stream: Stream, workers: int = 0) -> Prefetched:
    """Make the next steps of a stream ahead of time: in a thread, or in this number of processes (Linux only)."""
    if workers < 0:
        raise UserError(f"workers={workers}: give a whole number from 0")
    return Prefetched(stream, workers)
