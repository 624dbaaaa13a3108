"""A stream whose next steps are made while the present one is worked on.

Workers are threads: nearly all of the time goes to compiled code that lets other threads run, and so nothing is
copied between processes. As a step depends on its number alone, it is the same whichever thread makes it.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor

from driftline.errors import UserError
from driftline.types import Step, Stream


class Prefetched:
    """The steps of a stream, of which the next `depth` are always on their way."""

    def __init__(self, stream: Stream, workers: int, depth: int) -> None:
        self.stream = stream
        self._depth = depth
        self._futures: dict[int, Future[Step]] = {}
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="ahead")

    def __len__(self) -> int:
        return len(self.stream)

    def __getitem__(self, index: int) -> Step:
        index = range(len(self))[index]
        with self._lock:
            wanted = range(index, min(index + self._depth + 1, len(self)))
            for other in [known for known in self._futures if known not in wanted]:
                self._futures.pop(other).cancel()
            for number in wanted:
                if number not in self._futures:
                    self._futures[number] = self._pool.submit(self.stream.__getitem__, number)
            step = self._futures[index]
        return step.result()

    def close(self) -> None:
        """Make no further step."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def prefetch(stream: Stream, workers: int = 1, depth: int | None = None) -> Prefetched:
    """Prefetch steps in `workers` background threads. At most `depth` steps are buffered (default: 2 per worker)."""
    if workers < 1:
        raise UserError(f"workers={workers}: give a whole number from 1")
    return Prefetched(stream, workers, 2 * workers if depth is None else depth)
