"""Progress of stages and tasks: bars on a terminal, plain lines in a log, or nothing."""

from __future__ import annotations

import sys
import time
from types import TracebackType

from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

from driftline.cli.printing.console import SafeConsole
from driftline.cli.printing.terminal import echo
from driftline.engine.executors.base import Event
from driftline.engine.planning.plan import Plan
from driftline.io.sanitize import escape_control


class Progress:
    """Progress of the stages of a plan."""

    def __init__(self, quiet: bool = False) -> None:
        self._quiet = quiet
        self._total = 0
        self._ended = 0
        self._began: dict[str, float] = {}
        self._console = SafeConsole(stderr=True)
        self._bars: Bars | None = None
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Progress:
        return self

    def begin(self, plan: Plan) -> None:
        """Print the notes of a plan, and start the bars."""
        self._total = len(plan.stages)
        if self._quiet:
            return
        for note in plan.notes:
            self._console.print(f"note: {note}", highlight=False, markup=False)
        if sys.stderr.isatty():
            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            self._bars = Bars(*columns, console=self._console, transient=True)
            self._all = self._bars.add_task("all", total=self._total)
            self._bars.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._bars:
            self._bars.stop()

    def show(self, event: Event) -> None:
        """Show an event."""
        if self._quiet:
            return
        if event.kind in ("reused", "finished", "failed", "skipped"):
            self._ended += 1
        if self._bars:
            self._draw(self._bars, event)
        elif event.kind != "advanced":
            self._print(event)

    def _draw(self, bars: Bars, event: Event) -> None:
        if event.kind == "started":
            self._tasks[event.stage.key] = bars.add_task(escape(escape_control(event.stage.title)), total=None)
        elif event.kind == "advanced":
            bars.update(self._tasks[event.stage.key], completed=event.done, total=event.total or None)
        elif event.kind == "retried":
            bars.console.print(f"{event.stage.title} is tried again: {event.reason}", markup=False)
        else:
            if event.stage.key in self._tasks:
                bars.remove_task(self._tasks.pop(event.stage.key))
            bars.update(self._all, completed=self._ended)
            if event.kind == "failed":
                bars.console.print(f"{event.stage.title} failed: {event.reason}", style="red", markup=False)

    def _print(self, event: Event) -> None:
        if event.kind == "started":
            self._began[event.stage.key] = time.monotonic()
            return
        took = time.monotonic() - self._began.get(event.stage.key, time.monotonic())
        what = {"reused": "reused", "finished": f"finished in {took:.1f} s", "failed": f"failed: {event.reason}"}
        what |= {"retried": f"tried again: {event.reason}", "skipped": "skipped: its setting can no longer win"}
        echo(f"[{self._ended}/{self._total}] {event.stage.title}: {what[event.kind]}", err=True)


class TaskProgress:
    """Progress of tasks: a bar on a terminal, a line for each in a log, or nothing."""

    def __init__(self, quiet: bool = False) -> None:
        self._quiet = quiet
        self._console = SafeConsole(stderr=True)
        columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
        self._bars = Bars(*columns, console=self._console, transient=True) if self._console.is_terminal else None

    def __enter__(self) -> TaskProgress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._bars:
            self._bars.stop()

    def show(self, task: str, done: int, total: int) -> None:
        """Show that `done` of `total` tasks are done, the last of them `task`; with 0 done, that `task` begins."""
        if self._quiet:
            return
        if not done or not self._bars:
            before = f"[{done}/{total}] " if done else ""
            self._console.print(f"{before}{task}", highlight=False, markup=False, soft_wrap=True)
        if self._bars and not done:
            self._task = self._bars.add_task("", total=total)
            self._bars.start()
        elif self._bars:
            self._bars.update(self._task, completed=done, description=escape(escape_control(task)))
