"""Running stages: one after another in this process, or side by side wherever there is somebody to compute them."""

from __future__ import annotations

import heapq
import threading
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from driftline import uses
from driftline.engine import logs
from driftline.engine.logbook import Logbook
from driftline.engine.rounds import NO_MEMORY, called_for
from driftline.engine.stages import Report, Stage, perform
from driftline.errors import Changed, DiskError, UserError
from driftline.store import Store


@dataclass(frozen=True)
class Event:
    """Something a watcher may want to show."""

    kind: Literal["reused", "started", "advanced", "retried", "finished", "failed", "spared"]
    stage: Stage
    done: int = 0
    of: int = 0
    reason: str = ""


Watch = Callable[[Event], None]


@dataclass
class Summary:
    """How it went."""

    computed: list[Stage] = field(default_factory=list)
    reused: list[Stage] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    """Reasons by key."""
    retried: dict[str, list[str]] = field(default_factory=dict)
    """Why stages had to be tried again, by key."""
    excluded: dict[str, str] = field(default_factory=dict)
    """Trials that failed: their settings do not compete, and the others do."""
    spared: list[Stage] = field(default_factory=list)
    """Trials that no round called for: their settings could no longer win."""


class StageFailed(Exception):
    """A stage did not produce its result; the reason is a sentence."""


class Interrupted(Exception):
    """A stage was told to stop; it has not failed, and will be resumed."""


class WorkerLost(Exception):
    """Who was computing a stage is gone, and the stage may be tried again; the reason is a sentence."""


NEEDED = "a stage it needs failed: "


class Executor(Protocol):
    """Somewhere a stage can be computed."""

    retries: int
    """How often a stage is tried again after its worker was lost."""

    @property
    def broken(self) -> Exception | None:
        """Why no stage can be computed here any more, if that is so."""

    def compute(self, stage: Stage, report: Report) -> bool:
        """Return when the result is in the store: whether it had to be computed.

        Raise StageFailed if there never will be a result, WorkerLost if another attempt may give one.
        """


def execute(
    stages: Iterable[Stage], store: Store, executors: list[Executor], watch: Watch = lambda event: None
) -> Summary:
    """Compute every stage whose result is missing, on as many threads as there are executors."""
    store.tidy()
    board = _Board(list(stages), store, watch)
    uses.mark(store, (stage.key for stage in board.summary.reused if stage.is_run))
    with board.logbook:
        if isinstance(executors[0], Here):  # in this thread, which Ctrl-C reaches
            board.work(executors[0])
        else:
            threads = [threading.Thread(target=board.work, args=(executor,), daemon=True) for executor in executors]
            for thread in threads:
                thread.start()
            while board.error is None and any(thread.is_alive() for thread in threads):
                threads[0].join(0.05)
                threads = [thread for thread in threads if thread.is_alive()] or threads
                board.error = board.error or next((one.broken for one in executors if one.broken), None)
    if board.error is not None:
        raise board.error
    return board.summary


class _Board:
    """What is waiting, what is ready, and what is done; threads take from it what is ready, in the plan's order."""

    def __init__(self, stages: list[Stage], store: Store, watch: Watch) -> None:
        self.summary = Summary()
        self.error: BaseException | None = None
        self._store = store
        self._watch = watch
        self._changed = threading.Condition()
        there = done(stages, store)
        for stage in stages:
            if stage.key in there:
                self.summary.reused.append(stage)
                watch(Event("reused", stage))
        waiting = wanted([stage for stage in stages if stage.key not in there])
        self.logbook = Logbook(store, stages, waiting, len(self.summary.reused))
        self._waiting = dict(enumerate(waiting))
        to_come = {stage.key for stage in waiting}
        self._lacks = {place: to_come.intersection(stage.needs) for place, stage in self._waiting.items()}
        self._needed_by: dict[str, list[int]] = defaultdict(list)
        for place, lacking in self._lacks.items():
            for key in lacking:
                self._needed_by[key].append(place)
        self._ready = [place for place, lacking in self._lacks.items() if not lacking]  # a heap, being in order

    def work(self, executor: Executor) -> None:
        try:
            while (stage := self._take()) is not None:
                self._tell(Event("started", stage))
                try:
                    computed = self._compute(stage, executor)
                except StageFailed as failure:
                    self._fail(stage, str(failure))
                else:
                    self._finish(stage, computed)
        except Interrupted:
            return
        except BaseException as error:  # no stage can go on: a full disk, Ctrl-C or a bug; `execute` raises it
            self.error = error
            with self._changed:
                self._waiting.clear()
                self._ready.clear()
                self._changed.notify_all()

    def _take(self) -> Stage | None:
        """The next stage whose needs are met; None when nothing is left."""
        with self._changed:
            while self._waiting:
                while not self._ready and self._waiting:
                    self._changed.wait()
                if self._ready:
                    stage = self._waiting.pop(heapq.heappop(self._ready))
                    if called_for(stage, self._store):
                        return stage
                    self.summary.spared.append(stage)
                    self._show(Event("spared", stage))
                    self._settled(stage.key)
            return None

    def _compute(self, stage: Stage, executor: Executor) -> bool:
        """Have a stage computed, again if its worker is lost; whether that was necessary."""
        lost = self.summary.retried.get(stage.key, [])
        while True:
            try:
                return executor.compute(stage, self._reporter(stage))
            except WorkerLost as loss:
                lost = [*lost, str(loss)]
                if len(lost) > executor.retries:
                    self._store.fail(stage.key, stage.job, _joined(lost), logs.tail(self._store, stage.key))
                    raise StageFailed(_joined(lost)) from loss
                self.summary.retried[stage.key] = lost
                self._tell(Event("retried", stage, reason=str(loss)))

    def _finish(self, stage: Stage, computed: bool) -> None:
        """A stage is done, by this process or by another that was at it at the same time."""
        with self._changed:
            (self.summary.computed if computed else self.summary.reused).append(stage)
            self._show(Event("finished" if computed else "reused", stage))
            self._settled(stage.key)

    def _fail(self, stage: Stage, reason: str) -> None:
        """A stage failed, and with it all that cannot do without it."""
        with self._changed:
            (self.summary.excluded if stage.kind == "trial" else self.summary.failed)[stage.key] = reason
            self._show(Event("failed", stage, reason=reason))
            why = reason if reason.startswith(NEEDED) else NEEDED + reason
            for place in self._needed_by[stage.key]:
                after = self._waiting.get(place)
                if after is not None and stage.key not in after.despite:
                    del self._waiting[place]
                    self._store.fail(after.key, after.job, why)
                    self._fail(after, why)
            self._settled(stage.key)

    def _settled(self, key: str) -> None:
        """Nobody needs to wait for this stage any more."""
        for place in self._needed_by.pop(key, []):
            self._lacks[place].discard(key)
            if place in self._waiting and not self._lacks[place]:
                heapq.heappush(self._ready, place)
        self._changed.notify_all()

    def _reporter(self, stage: Stage) -> Report:
        return lambda done, of: self._tell(Event("advanced", stage, done, of))

    def _tell(self, event: Event) -> None:
        with self._changed:
            self._show(event)

    def _show(self, event: Event) -> None:
        self.logbook.note(event)
        self._watch(event)


def _joined(reasons: list[str]) -> str:
    """Why all attempts failed: "X, 3 times", or "X; then Y"."""
    if len(reasons) > 1 and len(set(reasons)) == 1:
        return f"{reasons[0]}, {len(reasons)} times"
    return "; then ".join(reasons)


def done(stages: Iterable[Stage], store: Store) -> set[str]:
    """The keys of those stages whose results are there."""
    return {stage.key for stage in stages if stage.done(store)}


def wanted(stages: list[Stage]) -> list[Stage]:
    """The runs, and the stages that these need."""
    kept: list[Stage] = []
    needs: set[str] = set()
    for stage in reversed(stages):  # what a stage needs comes before it
        if stage.kind == "deploy" or stage.key in needs:
            kept.append(stage)
            needs.update(stage.needs)
    return kept[::-1]


class Here:
    """Computes stages in this process, which no stage outlives: none is tried again."""

    retries = 0
    broken = None

    def __init__(self, store: Store, where: Path | None) -> None:
        self._store = store
        self._where = where

    def compute(self, stage: Stage, report: Report) -> bool:
        with one_thread():
            return attempt(stage, self._store, self._where, report)


def attempt(stage: Stage, store: Store, where: Path | None, report: Report) -> bool:
    """Perform a stage: whether it was not done before; if it cannot be done, record why and raise StageFailed."""
    try:
        computed = perform(stage, store, where, report)
        store.succeeded(stage.key)
        return computed
    except DiskError:
        raise  # the reason could not be written down either
    except Exception as error:
        name = NO_MEMORY[0] if out_of_memory(error) else type(error).__name__
        reason = str(error) if isinstance(error, UserError) else f"{name}: {error}"
        store.fail(stage.key, stage.job, reason, "" if isinstance(error, Changed) else traceback.format_exc())
        raise StageFailed(reason) from error


def out_of_memory(error: BaseException | None) -> bool:
    """Whether there was too little memory; torch has no error of its own for that on a CPU."""
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and "allocate memory" in str(error))


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread for numerics: workers do not fight, and sums do not depend on how many there are."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        try:
            import torch
        except ModuleNotFoundError:
            yield
            return
        before = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(before)
