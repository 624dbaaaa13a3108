"""A sweep whose store is a copy of one elsewhere: fetch what is needed, and bring back what is finished meanwhile."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from driftline.engine.execute import Event, Watch
from driftline.engine.plan import Plan
from driftline.engine.stages import Stage
from driftline.mirror import Mirror
from driftline.store import Store


@contextmanager
def mirrored(planned: Plan, store: Store, watch: Watch) -> Iterator[Watch]:
    """Around a sweep: what to call as its watcher. A store that is no copy has nothing to fetch or bring."""
    if store.mirror is None:
        yield watch
        return
    there = store.mirror.finished()
    fetch(planned, store, store.mirror, there)
    carrier = _Carrier(store.mirror)
    carrier.names.put("store.json")
    for stage in planned.stages:  # an earlier sweep may have been stopped before it had brought all
        if name_of(stage) not in there and stage.done(store):
            carrier.names.put(name_of(stage))

    def watching(event: Event) -> None:
        for name in _left_by(event, store):
            carrier.names.put(name)
        watch(event)

    try:
        yield watching
    finally:
        carrier.finish()


def fetch(planned: Plan, store: Store, mirror: Mirror, there: set[str]) -> None:
    """The runs of a plan that are finished elsewhere, and those other stages that what is missing needs."""
    named = {stage.key: name_of(stage) for stage in planned.stages}
    missing = [stage for stage in planned.stages if name_of(stage) not in there and not stage.done(store)]
    needed = {named[key] for stage in missing for key in stage.needs}
    runs = {name_of(stage) for stage in planned.stages if stage.kind == "deploy"}
    mirror.fetch(name for name in dict.fromkeys(named.values()) if name in there and name in runs | needed)


def fetch_all(planned: Plan, mirror: Mirror) -> None:
    """All stages of a plan that are finished elsewhere: what they took is known from them."""
    there = mirror.finished()
    mirror.fetch(name for name in dict.fromkeys(map(name_of, planned.stages)) if name in there)


def _left_by(event: Event, store: Store) -> list[str]:
    """What a stage that has ended left in the store."""
    key = event.stage.key
    logs = [f"logs/{key}.txt"] if store.log_path(key).exists() else []
    if event.kind == "finished":
        return [name_of(event.stage), *logs]
    return [f"failed/{key}.json", *logs] if event.kind == "failed" else []


def name_of(stage: Stage) -> str:
    """Where a stage's result lies in a store."""
    return f"runs/{stage.key}" if stage.is_run else f"stages/{stage.key}.safetensors"


class _Carrier:
    """Brings results elsewhere while the next ones are computed."""

    def __init__(self, mirror: Mirror) -> None:
        self.names: queue.Queue[str | None] = queue.Queue()
        self._mirror = mirror
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._carry, daemon=True)
        self._thread.start()

    def _carry(self) -> None:
        while (name := self.names.get()) is not None:
            if self._error is None:
                try:
                    self._mirror.bring(name)
                except Exception as error:  # raised by `finish`, in the thread that can say so
                    self._error = error

    def finish(self) -> None:
        """Wait until all is there; raise what went wrong."""
        self.names.put(None)
        self._thread.join()
        if self._error is not None:
            raise self._error
