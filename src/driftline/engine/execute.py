"""Running stages: one after another in this process, or side by side in worker processes."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from driftline.engine.logbook import Logbook
from driftline.engine.stages import Report, Stage, perform
from driftline.errors import DiskError, UserError
from driftline.store import Store


@dataclass(frozen=True)
class Event:
    """Something a watcher may want to show."""

    kind: Literal["reused", "started", "advanced", "finished", "failed"]
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


class StageFailed(Exception):
    """A stage did not produce its result; the reason is a sentence."""


class Interrupted(Exception):
    """A stage was told to stop; it has not failed, and will be resumed."""


NEEDED = "a stage it needs failed: "


class Executor(Protocol):
    """Somewhere a stage can be computed."""

    def compute(self, stage: Stage, report: Report) -> None:
        """Return when the result is in the store; raise StageFailed if it never will be."""


def execute(
    stages: Iterable[Stage], store: Store, executors: list[Executor], watch: Watch = lambda event: None
) -> Summary:
    """Compute every stage whose result is missing, on as many threads as there are executors."""
    board = _Board(list(stages), store, watch)
    threads = [threading.Thread(target=board.work, args=(executor,), daemon=True) for executor in executors[1:]]
    for thread in threads:
        thread.start()
    with board.logbook:
        board.work(executors[0])
        while board.error is None and any(thread.is_alive() for thread in threads):
            threads[0].join(0.05)
            threads = [thread for thread in threads if thread.is_alive()] or threads
    if board.error is not None:
        raise board.error
    return board.summary


class _Board:
    """What is waiting, what is under way and what is done; threads take from it what is ready."""

    def __init__(self, stages: list[Stage], store: Store, watch: Watch) -> None:
        self.summary = Summary()
        self.error: BaseException | None = None
        self._store = store
        self._watch = watch
        self._done: set[str] = set()
        self._waiting: list[Stage] = []
        self._changed = threading.Condition()
        for stage in stages:
            if stage.done(store):
                store.forget_workings(stage.key)  # whoever finished it may have died before doing so
                self._done.add(stage.key)
                self.summary.reused.append(stage)
                watch(Event("reused", stage))
            else:
                self._waiting.append(stage)
        self._waiting = _wanted(self._waiting)
        self.logbook = Logbook(store, stages, self._waiting, len(self.summary.reused))

    def work(self, executor: Executor) -> None:
        try:
            while (stage := self._take()) is not None:
                self._tell(Event("started", stage))
                try:
                    executor.compute(stage, self._reporter(stage))
                except StageFailed as failure:
                    self._finish(stage, str(failure))
                else:
                    self._finish(stage, None)
        except Interrupted:
            return
        except BaseException as error:  # no stage can go on: a full disk, Ctrl-C or a bug; `execute` raises it
            self.error = error
            with self._changed:
                self._waiting.clear()
                self._changed.notify_all()

    def _take(self) -> Stage | None:
        """The next stage whose needs are met; None when nothing is left."""
        with self._changed:
            while self._waiting:
                for stage in self._waiting:
                    lost = [key for key in stage.needs if key in self.summary.failed]
                    if lost:
                        self._waiting.remove(stage)
                        why = self.summary.failed[lost[0]]
                        reason = why if why.startswith(NEEDED) else NEEDED + why
                        self._store.fail(stage.key, stage.job, reason)
                        self._settle(stage, reason)
                        break
                    if self._done.issuperset(stage.needs):
                        self._waiting.remove(stage)
                        return stage
                else:
                    self._changed.wait()
            return None

    def _finish(self, stage: Stage, reason: str | None) -> None:
        with self._changed:
            self._settle(stage, reason)
            self._changed.notify_all()

    def _settle(self, stage: Stage, reason: str | None) -> None:
        if reason is None:
            self._done.add(stage.key)
            self.summary.computed.append(stage)
            self._show(Event("finished", stage))
        else:
            self.summary.failed[stage.key] = reason
            self._show(Event("failed", stage, reason=reason))

    def _reporter(self, stage: Stage) -> Report:
        return lambda done, of: self._tell(Event("advanced", stage, done, of))

    def _tell(self, event: Event) -> None:
        with self._changed:
            self._show(event)

    def _show(self, event: Event) -> None:
        self.logbook.note(event)
        self._watch(event)


def _wanted(stages: list[Stage]) -> list[Stage]:
    """The runs, and the stages that these need."""
    kept: list[Stage] = []
    needs: set[str] = set()
    for stage in reversed(stages):  # what a stage needs comes before it
        if stage.kind == "deploy" or stage.key in needs:
            kept.append(stage)
            needs.update(stage.needs)
    return kept[::-1]


class Here:
    """Computes stages in this process."""

    def __init__(self, store: Store, where: Path | None) -> None:
        self._store = store
        self._where = where

    def compute(self, stage: Stage, report: Report) -> None:
        with one_thread():
            attempt(stage, self._store, self._where, report)


def attempt(stage: Stage, store: Store, where: Path | None, report: Report) -> None:
    """Perform a stage; if it cannot be done, record why and raise StageFailed."""
    try:
        perform(stage, store, where, report)
        store.succeeded(stage.key)
    except DiskError:
        raise  # the reason could not be written down either
    except Exception as error:
        reason = str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
        store.fail(stage.key, stage.job, reason, traceback.format_exc())
        raise StageFailed(reason) from error


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
