"""The status file of a sweep, for `driftline watch` in another process.

status/NAME.json   one per plan: which stages wait, run and have ended

The process that drives a sweep writes the file at most once a second, and touches it as often, so that an old file was
left by a process that died. It is not needed to run or to resume.
"""

from __future__ import annotations

import json
import os
import platform
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from driftline.spec.keys import stable_hash
from driftline.store.store import Store
from driftline.types import JsonObject

if TYPE_CHECKING:
    from driftline.engine.executors.base import Event
    from driftline.engine.stages import Stage

FOLDER = "status"
WRITE_INTERVAL = 1.0  # seconds between two signs of life
WRITE_TIME_FACTOR = 20  # writing takes at most a twentieth of the time: a million runs make a file of 46 MB
DEAD_AFTER = 60.0  # seconds without one after which a process is taken for dead


@dataclass
class RunningStage:
    """A stage under way."""

    name: str
    kind: str
    since: float
    """When it began: seconds since 1970."""
    done: int = 0
    total: int = 0
    """All its steps; 0 if it has not counted any."""
    first: int = 0
    first_at: float = 0.0
    """Steps done at its first report, and its time; a resumed run does not start at 0."""


@dataclass
class SweepStatus:
    """The stages of a plan by state."""

    began: float
    pid: int = field(default_factory=os.getpid)
    host: str = field(default_factory=platform.node)
    reused: int = 0
    computed: int = 0
    waiting: dict[str, int] = field(default_factory=dict)
    """Stages that have not begun, by kind."""
    durations: dict[str, tuple[int, float]] = field(default_factory=dict)
    """By kind: number of stages computed, and the seconds they took together."""
    running: dict[str, RunningStage] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    """Names by key."""
    runs: dict[str, str] = field(default_factory=dict)
    """The runs it is about: names by key."""
    ended: bool = False

    def is_alive(self, last_seen: float, now: float) -> bool:
        """Return whether the sweep is still running, given when its file was last touched."""
        return not self.ended and now - last_seen < DEAD_AFTER and (self.host != platform.node() or _exists(self.pid))


class StatusFile:
    """The file of one sweep, kept up to date while it runs."""

    def __init__(self, store: Store, planned: Sequence[Stage], waiting: Sequence[Stage], reused: int) -> None:
        """`planned`: all stages. `waiting`: those to compute. `reused`: number of stages that are done."""
        self._path = store.folder / FOLDER / f"{stable_hash([stage.key for stage in planned])}.json"
        self._status = SweepStatus(
            began=time.time(),
            reused=reused,
            waiting=dict(Counter(stage.kind for stage in waiting)),
            runs={stage.key: stage.title for stage in planned if stage.is_result},
        )
        self._start = time.monotonic()
        self._changed = True
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._write_periodically, daemon=True)

    def __enter__(self) -> StatusFile:
        self.write()
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._stopped.set()
        self._thread.join()
        self._status.ended = self._changed = True
        self.write()

    def record(self, event: Event) -> None:
        """Note what happened to a stage."""
        key, now = event.stage.key, self._now()
        with self._lock:
            self._changed = True
            if event.kind == "started":
                self._status.waiting[event.stage.kind] -= 1
                self._status.running[key] = RunningStage(event.stage.title, event.stage.kind, now)
            elif event.kind == "advanced":
                _record_progress(self._status.running[key], event.done, event.total, now)
            elif event.kind in ("finished", "failed", "reused", "skipped"):
                self._record_end(event, now)

    def _now(self) -> float:
        """Return seconds since 1970 by a monotonic clock, because the system clock may change."""
        return self._status.began + time.monotonic() - self._start

    def _record_end(self, event: Event, now: float) -> None:
        stage, sweep = event.stage, self._status
        if (running := sweep.running.pop(stage.key, None)) is None:
            sweep.waiting[stage.kind] -= 1  # it never began, because something it needs failed
        elif event.kind == "finished":
            count, seconds = sweep.durations.get(stage.kind, (0, 0.0))
            sweep.durations[stage.kind] = (count + 1, seconds + now - running.since)
        if event.kind == "failed":
            sweep.failed[stage.key] = stage.title
        elif event.kind == "reused":
            sweep.reused += 1
        elif event.kind == "finished":
            sweep.computed += 1

    def _write_periodically(self) -> None:
        took = 0.0
        while not self._stopped.wait(min(max(WRITE_INTERVAL, WRITE_TIME_FACTOR * took), DEAD_AFTER / 2)):
            began = time.monotonic()
            self.write()
            took = time.monotonic() - began

    def write(self) -> None:
        """Update the file, or touch it if nothing changed; a full disk is reported by the run itself."""
        with self._lock:
            content, self._changed = json.dumps(asdict(self._status)) if self._changed else None, False
        with suppress(OSError):
            if content is None:
                os.utime(self._path)
                return
            self._path.parent.mkdir(parents=True, exist_ok=True)
            temporary = self._path.with_name(f".{self._path.name}.{os.getpid()}")
            temporary.write_text(content, encoding="utf-8")
            os.replace(temporary, self._path)


def _record_progress(running: RunningStage, done: int, total: int, now: float) -> None:
    if running.total == 0:
        running.first, running.first_at = done, now
    running.done, running.total = done, total


def read_statuses(store: Store) -> list[tuple[SweepStatus, float]]:
    """Return the sweeps of a store and when each was last seen, the latest last; unreadable files are left out."""
    statuses = []
    for path in filter(Path.is_file, (store.folder / FOLDER).glob("*.json")):
        with suppress(OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            statuses.append((_from_json(json.loads(path.read_bytes())), path.stat().st_mtime))
    return sorted(statuses, key=lambda pair: pair[1])


def _from_json(content: JsonObject) -> SweepStatus:
    running = {key: RunningStage(**value) for key, value in content.pop("running").items()}
    pairs = content.pop("durations").items()
    durations = {kind: (int(count), float(seconds)) for kind, (count, seconds) in pairs}
    return SweepStatus(**content, running=running, durations=durations)


def _exists(pid: int) -> bool:
    if os.name == "nt":
        return True  # Windows has no signal 0
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's
        return True
    return True
