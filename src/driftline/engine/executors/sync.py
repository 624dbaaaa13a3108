"""Keep a remote store up to date: download what a plan needs, upload what is finished."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from driftline.engine.executors.base import Event, OnEvent
from driftline.engine.planning.plan import Plan
from driftline.store.remote import RemoteStore
from driftline.store.store import Store


@contextmanager
def synchronized(plan: Plan, store: Store, on_event: OnEvent) -> Iterator[OnEvent]:
    """Yield the event callback of a sweep, which uploads results as they come; a local store needs no uploads."""
    if store.remote is None:
        yield on_event
        return
    available = store.remote.finished()
    download_needed(plan, store, store.remote, available)
    uploader = _Uploader(store.remote)
    uploader.names.put("store.json")
    for stage in plan.stages:  # an earlier sweep may have been stopped before it had uploaded all
        if stage.result_name not in available and stage.is_done(store):
            uploader.names.put(stage.result_name)

    def upload_and_show(event: Event) -> None:
        for name in _written_by(event, store):
            uploader.names.put(name)
        on_event(event)

    try:
        yield upload_and_show
    finally:
        uploader.finish()


def download_needed(plan: Plan, store: Store, remote: RemoteStore, available: set[str]) -> None:
    """Download the results of a plan that are in the remote store, and the stages that missing ones need."""
    names = {stage.key: stage.result_name for stage in plan.stages}
    missing = [stage for stage in plan.stages if stage.result_name not in available and not stage.is_done(store)]
    needed = {names[key] for stage in missing for key in stage.needs}
    results = {stage.result_name for stage in plan.stages if stage.is_result}
    remote.download(name for name in dict.fromkeys(names.values()) if name in available and name in results | needed)


def download_all(plan: Plan, remote: RemoteStore) -> None:
    """Download all stages of a plan that are in the remote store: they record their costs."""
    available = remote.finished()
    names = dict.fromkeys(stage.result_name for stage in plan.stages)
    remote.download(name for name in names if name in available)


def _written_by(event: Event, store: Store) -> list[str]:
    """Return what a stage that has ended wrote to the store."""
    stage = event.stage
    logs = [f"logs/{stage.key}.txt"] if store.log_path(stage.key).exists() else []
    if event.kind == "finished":
        return [stage.result_name, *logs]
    return [f"failed/{stage.key}.json", *logs] if event.kind == "failed" else []


class _Uploader:
    """Uploads results while the next ones are computed."""

    def __init__(self, remote: RemoteStore) -> None:
        self.names: queue.Queue[str | None] = queue.Queue()
        self._remote = remote
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._upload, daemon=True)
        self._thread.start()

    def _upload(self) -> None:
        while (name := self.names.get()) is not None:
            if self._error is None:
                try:
                    self._remote.upload(name)
                except Exception as error:  # raised by `finish`, in the thread that can say so
                    self._error = error

    def finish(self) -> None:
        """Wait until everything is uploaded; raise what went wrong."""
        self.names.put(None)
        self._thread.join()
        if self._error is not None:
            raise self._error
