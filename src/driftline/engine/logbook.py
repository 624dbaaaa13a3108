"""How far a sweep is, for whoever watches it from another process.

sweeps/NAME.json   one per plan: what it has to do, what it is doing, and how that goes

The process that drives a sweep writes the file at most once a second, and touches it as often, so that a file that has
grown old was left by a process that died. Nobody needs it to run or to resume: it is lost without harm.
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
from types import TracebackType
from typing import TYPE_CHECKING, Any

from driftline.jobs import hash_of
from driftline.store import Store

if TYPE_CHECKING:
    from driftline.engine.execute import Event
    from driftline.engine.stages import Stage

BEAT = 1.0  # seconds between two signs of life
PATIENCE = 60.0  # seconds without one after which a process is taken for dead


@dataclass
class Running:
    """A stage under way."""

    name: str
    kind: str
    since: float
    """When it began: seconds since 1970."""
    done: int = 0
    of: int = 0
    """All its steps; 0 if it has not counted any."""
    first: int = 0
    first_at: float = 0.0
    """How many steps were done when it first told, and when that was: a resumed one does not begin with none."""


@dataclass
class Sweep:
    """What a driver has done of its plan, and what it is doing."""

    began: float
    pid: int = field(default_factory=os.getpid)
    host: str = field(default_factory=platform.node)
    reused: int = 0
    computed: int = 0
    waiting: dict[str, int] = field(default_factory=dict)
    """Stages that have not begun, by kind."""
    took: dict[str, tuple[int, float]] = field(default_factory=dict)
    """By kind: how many stages were computed, in how many seconds altogether."""
    running: dict[str, Running] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    """Names by key."""
    runs: dict[str, str] = field(default_factory=dict)
    """The runs it is about: names by key."""
    ended: bool = False

    def alive(self, heard: float, now: float) -> bool:
        """Whether it goes on, given when its last sign of life was."""
        return not self.ended and now - heard < PATIENCE and (self.host != platform.node() or _exists(self.pid))


class Logbook:
    """Keeps the file of one sweep up to date while it runs."""

    def __init__(self, store: Store, planned: Sequence[Stage], waiting: Sequence[Stage], reused: int) -> None:
        """`planned`: all stages. `waiting`: those that will be computed. `reused`: how many were there."""
        self._path = store.folder / "sweeps" / f"{hash_of([stage.key for stage in planned])}.json"
        self._sweep = Sweep(
            began=time.time(),
            reused=reused,
            waiting=dict(Counter(stage.kind for stage in waiting)),
            runs={stage.key: stage.name for stage in planned if stage.kind == "deploy"},
        )
        self._start = time.monotonic()
        self._changed = True
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)

    def __enter__(self) -> Logbook:
        self.write()
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._over.set()
        self._thread.join()
        self._sweep.ended = self._changed = True
        self.write()

    def note(self, event: Event) -> None:
        """Something happened to a stage."""
        key, now = event.stage.key, self._now()
        with self._lock:
            self._changed = True
            if event.kind == "started":
                self._sweep.waiting[event.stage.kind] -= 1
                self._sweep.running[key] = Running(event.stage.name, event.stage.kind, now)
            elif event.kind == "advanced":
                _advance(self._sweep.running[key], event.done, event.of, now)
            elif event.kind in ("finished", "failed", "reused", "spared"):
                self._settle(event, now)

    def _now(self) -> float:
        """Seconds since 1970 as they were when the sweep began, counted on evenly: a clock may be set meanwhile."""
        return self._sweep.began + time.monotonic() - self._start

    def _settle(self, event: Event, now: float) -> None:
        stage, sweep = event.stage, self._sweep
        if (running := sweep.running.pop(stage.key, None)) is None:
            sweep.waiting[stage.kind] -= 1  # it never began, because something it needs failed
        elif event.kind == "finished":
            count, seconds = sweep.took.get(stage.kind, (0, 0.0))
            sweep.took[stage.kind] = (count + 1, seconds + now - running.since)
        if event.kind == "failed":
            sweep.failed[stage.key] = stage.name
        elif event.kind == "reused":
            sweep.reused += 1
        elif event.kind == "finished":
            sweep.computed += 1

    def _beat(self) -> None:
        while not self._over.wait(BEAT):
            self.write()

    def write(self) -> None:
        """Bring the file up to date, or touch it if it is; a full disk is the run's to report, not this file's."""
        with self._lock:
            content, self._changed = json.dumps(asdict(self._sweep)) if self._changed else None, False
        with suppress(OSError):
            if content is None:
                os.utime(self._path)
                return
            self._path.parent.mkdir(parents=True, exist_ok=True)
            beside = self._path.with_name(f".{self._path.name}.{os.getpid()}")
            beside.write_text(content, encoding="utf-8")
            os.replace(beside, self._path)


def _advance(running: Running, done: int, of: int, now: float) -> None:
    if running.of == 0:
        running.first, running.first_at = done, now
    running.done, running.of = done, of


def sweeps(store: Store) -> list[tuple[Sweep, float]]:
    """The sweeps of a store and when each was last heard of, the latest last; what cannot be read is left out."""
    found = []
    for path in (store.folder / "sweeps").glob("*.json"):
        with suppress(OSError, ValueError, TypeError, KeyError, AttributeError):
            found.append((_read(json.loads(path.read_bytes())), path.stat().st_mtime))
    return sorted(found, key=lambda pair: pair[1])


def _read(content: dict[str, Any]) -> Sweep:
    running = {key: Running(**value) for key, value in content.pop("running").items()}
    took = {kind: (int(count), float(seconds)) for kind, (count, seconds) in content.pop("took").items()}
    return Sweep(**content, running=running, took=took)


def _exists(pid: int) -> bool:
    if os.name == "nt":
        return True  # there, asking is not possible without disturbing
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # another user's
    return True
