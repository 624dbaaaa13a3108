"""Map a function over items on a Ray cluster: what all items share is sent once per machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from driftline.engine.executors.config import ExecutorConfig
from driftline.engine.executors.process import one_thread
from driftline.engine.ray.executor import connect
from driftline.errors import UserError

T = TypeVar("T")
R = TypeVar("R")


def ray_map(
    function: Callable[[T], R],
    items: Sequence[T],
    config: ExecutorConfig,
    on_done: Callable[[T, int], None],
    save: Callable[[T, R], None],
) -> list[R]:
    """Return `[function(item) for item in items]`; `save` is called here with each item and its result."""
    if not items:
        return []
    results: dict[int, R] = {}
    with connect(config) as ray:
        shared = ray.put((function, list(items)))  # one object, so that what items share is in it once
        task = ray.remote(max_retries=config.retries, num_cpus=config.cpus)(_call)
        waiting = {task.remote(shared, index): index for index in range(len(items))}
        while waiting:
            (ready, *_), _ = ray.wait(list(waiting))
            index = waiting.pop(ready)
            try:
                results[index] = ray.get(ready)
            except ray.exceptions.RayTaskError as error:
                if isinstance(error.cause, UserError):
                    raise error.cause from None
                raise
            save(items[index], results[index])
            on_done(items[index], len(results))
    return [results[index] for index in range(len(items))]


def _call(shared: tuple[Callable[[Any], Any], list[Any]], index: int) -> Any:
    function, items = shared
    with one_thread():
        return function(items[index])
