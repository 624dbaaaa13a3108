"""Schedule stages: each executor's thread takes the first ready stage in plan order."""

from __future__ import annotations

import heapq
import threading
from collections import defaultdict
from collections.abc import Iterable

from driftline.engine.executors import logs
from driftline.engine.executors.base import (
    Event,
    Executor,
    Interrupted,
    OnEvent,
    RunSummary,
    StageFailed,
    WorkerLost,
    ignore_event,
    record_failure,
)
from driftline.engine.executors.status import StatusFile
from driftline.engine.stages import Stage
from driftline.spec.keys import file_hashes
from driftline.store import last_used
from driftline.store.store import Store
from driftline.types import OnProgress

NEEDED = "a stage it needs failed: "
POLL = 0.05  # seconds between two looks at the threads


def schedule(
    stages: Iterable[Stage], store: Store, executors: list[Executor], on_event: OnEvent = ignore_event
) -> RunSummary:
    """Compute every stage whose result is missing, on one thread per executor."""
    store.clean_up()
    scheduler = Scheduler(list(stages), store, on_event)
    last_used.mark_used(store, _user_files(scheduler.summary.reused))
    with scheduler.status:
        if executors[0].in_process:
            scheduler.work(executors[0])
        else:
            _work_in_threads(scheduler, executors)
    if scheduler.error is not None:
        raise scheduler.error
    return scheduler.summary


def _work_in_threads(scheduler: Scheduler, executors: list[Executor]) -> None:
    """Wait until all threads have ended, one has failed, or an executor is broken."""
    threads = [threading.Thread(target=scheduler.work, args=(executor,), daemon=True) for executor in executors]
    for thread in threads:
        thread.start()
    while scheduler.error is None and any(thread.is_alive() for thread in threads):
        threads[0].join(POLL)
        threads = [thread for thread in threads if thread.is_alive()] or threads
        broken = (executor.broken for executor in executors)
        scheduler.error = scheduler.error or next((error for error in broken if error), None)


class Scheduler:
    """The stages that wait, are ready, or have ended."""

    def __init__(self, stages: list[Stage], store: Store, on_event: OnEvent) -> None:
        self.summary = RunSummary()
        self.error: BaseException | None = None
        self._store = store
        self._on_event = on_event
        self._changed = threading.Condition()
        done = completed_keys(stages, store)
        store.index.save()
        for stage in stages:
            if stage.key in done:
                self.summary.reused.append(stage)
                on_event(Event("reused", stage))
        waiting = required_stages([stage for stage in stages if stage.key not in done])
        self.status = StatusFile(store, stages, waiting, len(self.summary.reused))
        self._waiting = dict(enumerate(waiting))
        keys = {stage.key for stage in waiting}
        self._missing = {place: keys.intersection(stage.needs) for place, stage in self._waiting.items()}
        self._needed_by: dict[str, list[int]] = defaultdict(list)
        for place, missing in self._missing.items():
            for key in missing:
                self._needed_by[key].append(place)
        self._ready = [place for place, missing in self._missing.items() if not missing]  # sorted, so it is a heap

    def work(self, executor: Executor) -> None:
        """Submit stages to an executor until none is left."""
        try:
            while (stage := self._take()) is not None:
                self._emit(Event("started", stage))
                try:
                    computed = self._submit(stage, executor)
                except StageFailed as failure:
                    self._fail(stage, str(failure))
                else:
                    self._finish(stage, computed)
        except Interrupted:
            return
        except BaseException as error:  # no stage can go on: a full disk, Ctrl-C or a bug; `schedule` raises it
            self.error = error
            with self._changed:
                self._waiting.clear()
                self._ready.clear()
                self._changed.notify_all()

    def _take(self) -> Stage | None:
        """Return the next ready stage; None when nothing is left."""
        with self._changed:
            while self._waiting:
                while not self._ready and self._waiting:
                    self._changed.wait()
                if self._ready:
                    stage = self._waiting.pop(heapq.heappop(self._ready))
                    if stage.is_required(self._store):
                        return stage
                    self.summary.skipped.append(stage)
                    self._show(Event("skipped", stage))
                    self._release(stage.key)
            return None

    def _submit(self, stage: Stage, executor: Executor) -> bool:
        """Submit a stage, again if its worker is lost; return whether it had to be computed."""
        losses = self.summary.retried.get(stage.key, [])
        while True:
            try:
                return executor.submit(stage, self._on_progress(stage))
            except WorkerLost as loss:
                losses = [*losses, str(loss)]
                if len(losses) > executor.retries:
                    record_failure(stage, self._store, _joined(losses), logs.tail(self._store, stage.key))
                    raise StageFailed(_joined(losses)) from loss
                self.summary.retried[stage.key] = losses
                self._emit(Event("retried", stage, reason=str(loss)))

    def _finish(self, stage: Stage, computed: bool) -> None:
        """Note that a stage is done, by this process or by another that computed it at the same time."""
        with self._changed:
            (self.summary.computed if computed else self.summary.reused).append(stage)
            self._show(Event("finished" if computed else "reused", stage))
            self._release(stage.key)

    def _fail(self, stage: Stage, reason: str) -> None:
        """Note that a stage failed, and with it all stages that depend on it."""
        with self._changed:
            (self.summary.failed_candidates if stage.may_fail else self.summary.failed)[stage.key] = reason
            self._show(Event("failed", stage, reason=reason))
            why = reason if reason.startswith(NEEDED) else NEEDED + reason
            for place in self._needed_by[stage.key]:
                dependent = self._waiting.get(place)
                if dependent is not None and stage.key not in dependent.optional_needs:
                    del self._waiting[place]
                    record_failure(dependent, self._store, why)
                    self._fail(dependent, why)
            self._release(stage.key)

    def _release(self, key: str) -> None:
        """Let the stages that waited for this one become ready."""
        for place in self._needed_by.pop(key, []):
            self._missing[place].discard(key)
            if place in self._waiting and not self._missing[place]:
                heapq.heappush(self._ready, place)
        self._changed.notify_all()

    def _on_progress(self, stage: Stage) -> OnProgress:
        return lambda done, total: self._emit(Event("advanced", stage, done, total))

    def _emit(self, event: Event) -> None:
        with self._changed:
            self._show(event)

    def _show(self, event: Event) -> None:
        self.status.record(event)
        self._on_event(event)


def _joined(reasons: list[str]) -> str:
    """Return why all attempts failed: "X, 3 times", or "X; then Y"."""
    if len(reasons) > 1 and len(set(reasons)) == 1:
        return f"{reasons[0]}, {len(reasons)} times"
    return "; then ".join(reasons)


def completed_keys(stages: Iterable[Stage], store: Store) -> set[str]:
    """Return the keys of the stages whose results are in the store."""
    return {stage.key for stage in stages if stage.is_done(store)}


def _user_files(stages: Iterable[Stage]) -> set[tuple[str, str]]:
    """Return name and hash of the users' files behind these runs."""
    jobs = {stage.job.model_dump_json(exclude={"seed"}): stage.job for stage in stages if stage.is_result}
    return {version for job in jobs.values() for version in file_hashes(job).items()}


def required_stages(stages: list[Stage]) -> list[Stage]:
    """Return the results that a spec asks for, and the stages that these need."""
    required: list[Stage] = []
    needs: set[str] = set()
    for stage in reversed(stages):  # what a stage needs comes before it
        if stage.is_result or stage.key in needs:
            required.append(stage)
            needs.update(stage.needs)
    return required[::-1]
