"""Drivers and workers are killed at random moments, until a real sweep of several benchmarks is done nevertheless.

No finished stage is lost or computed again, nothing half-made is ever taken for whole, and the records are those of a
run that was left in peace, bit for bit.
"""

from __future__ import annotations

import glob
import math
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from driftline.engine.executors.base import Event
from driftline.engine.executors.scheduler import schedule
from driftline.engine.planning.plan import Plan, merged, plan
from driftline.engine.run import as_spec, run_plan
from driftline.engine.stages import checkpoint
from driftline.store.store import Store

from .forked import ForkedWorker

SEED = 20
LEAST = 6.0  # seconds; bench/chaos.py goes on for longer
FEWEST = 10  # kills, however long they take on a busy machine
TOLD = "told"  # what a test records under this name is shown after all tests
STREAM: dict[str, Any] = {"benchmark": "timeline", "data": {"name": "digits", "periods": 6}, "model": "linear"}
SPECS: list[dict[str, Any]] = [
    {
        **STREAM,
        "methods": [{"name": "erm", "updates": 30}, {"name": "ft", "updates": 30}],
        "seeds": 2,
        "timeline": {"resamples": 50},
    },
    {
        "benchmark": "refinement",
        "data": "digit-clusters",
        "model": {"name": "mlp", "width": 16},
        "methods": [{"name": "cft", "epochs": 2}],
        "selection": {"grid": {"lr": [1e-9, 3e-3]}, "seeds": 2},
        "refinement": {
            "episodes": 4,
            "queries_per_episode": 16,
            "upstream_set": 64,
            "held_out": 20,
            "upstream_updates": 60,
        },
    },
    {
        "benchmark": "seq-to-final",
        "data": "digits",
        "model": "mlp",
        "methods": ["baseline", "seq-ft"],
        "seq-to-final": {
            **{"shifts": "RL", "sizes": "200,100,60", "test": 100, "oracle": 200, "epochs": 1, "resamples": 20},
            **{"lr": "3e-3,1e-3", "weight_decay": "1e-4", "dropout": 0},
        },
    },
]


@pytest.fixture(scope="module")
def planned() -> Plan:
    return merged(plan(as_spec(spec)) for spec in SPECS)


def results(folder: Path) -> dict[str, bytes]:
    """All that was computed but how long it took."""
    runs = [path for path in folder.glob("runs/*/*") if path.name != "runtime.json"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(runs)}


def places(folder: Path) -> dict[str, int]:
    """Where on the disk each finished result lies: one that is written again has another place."""
    found = [*folder.glob("stages/[!.]*"), *folder.glob("runs/*/card.json")]
    return {path.relative_to(folder).parts[1]: path.stat().st_ino for path in found}


class Driver:
    """A process that carries out the plan on two workers, and writes down what was computed.

    The workers are copies of it: a new one is there at once, so that kills hit work and not imports.
    """

    def __init__(self, planned: Plan, folder: Path) -> None:
        self.code: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                code = self._drive(planned, Store.create(folder))
            finally:
                os._exit(code)

    def _drive(self, planned: Plan, store: Store) -> int:
        journal = os.open(store.folder / "journal", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

        def watch(event: Event) -> None:
            if event.kind == "finished":
                os.write(journal, f"{event.stage.key}\n".encode())

        return len(
            schedule(planned.stages, store, [ForkedWorker(store, None), ForkedWorker(store, None)], watch).failed
        )

    def ended(self) -> int | None:
        """The exit code, if it has ended."""
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.code = os.waitstatus_to_exitcode(status) if pid else None
        return self.code

    def kill(self) -> bool:
        """End it at once; whether it had not ended by itself."""
        if self.ended() is not None:
            return False
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self.code = -signal.SIGKILL
        return True

    def workers(self) -> list[int]:
        """The processes that it started."""
        found = []
        for path in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = path.read_text().rpartition(")")[2].split()
            except OSError:  # it ended meanwhile
                continue
            if int(fields[1]) == self.pid and fields[0] != "Z":
                found.append(int(path.parent.name))
        return found


def torment(planned: Plan, folder: Path, moments: random.Random, until: float) -> Counter[str]:
    """Kill drivers and workers until all is done, or until a moment, and then let it finish; how many of each."""
    kills: Counter[str] = Counter()
    known: dict[str, int] = {}
    driver = Driver(planned, folder)
    try:
        while (code := _wait(driver, folder, moments, until if kills.total() >= FEWEST else math.inf)) != 0:
            workers = driver.workers()
            if code is None and workers and moments.random() < 0.6:
                with suppress(ProcessLookupError):  # it ended meanwhile
                    os.kill(moments.choice(workers), signal.SIGKILL)
                    kills["workers"] += 1
            else:
                kills["drivers"] += driver.kill()
                driver = Driver(planned, folder)
            now = places(folder)
            assert known.items() <= now.items(), "a finished stage is neither lost nor made again"
            known = now
    finally:
        driver.kill()
    return kills


def _wait(driver: Driver, folder: Path, moments: random.Random, until: float) -> int | None:
    """Until something new was written, most of the times, and then a moment; the exit code if it ended meanwhile."""
    traces, waits, pause = _traces(folder), moments.random() < 0.8, moments.uniform(0, 0.3)
    while time.monotonic() > until or (waits and _traces(folder) == traces):
        if (code := driver.ended()) is not None:
            return code
        time.sleep(0.005)
    time.sleep(pause)
    return driver.ended()


def _traces(folder: Path) -> list[str]:
    """What there is in a store: finished stages, and parts of unfinished ones; folders may vanish while one looks."""
    return [path for pattern in ("work/*/*", "stages/*", "runs/*") for path in glob.glob(f"{folder}/{pattern}")]


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="workers are found in /proc")
def test_chaos(
    planned: Plan,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(checkpoint, "CHECKPOINT_SECONDS", 0.0)
    kinds = Counter(stage.kind for stage in planned.stages)
    assert min(kinds[kind] for kind in ("pretrain", "fit", "search-run", "search-round", "run")) > 0
    peace = tmp_path / "peace"
    run_plan(planned, Store.create(peace))
    expected, moments, kills, sweeps = results(peace), random.Random(SEED), Counter[str](), 0
    began = time.monotonic()
    while time.monotonic() - began < LEAST:
        folder = tmp_path / f"chaos-{sweeps}"
        kills += torment(planned, folder, moments, began + LEAST)
        computed = Counter((folder / "journal").read_text().split())
        assert set(computed.values()) == {1}, "no stage was computed twice"
        assert results(folder) == expected, "and all ends as in peace"
        assert not list(folder.glob("work/*")), "nothing half-made is left"
        assert not list(folder.glob("locks/*"))
        sweeps += 1
    took = time.monotonic() - began
    record_property(TOLD, f"chaos: survived {kills.total()} kills ({dict(kills)}) in {sweeps} sweep(s), {took:.0f} s")
    assert kills["drivers"]
    assert kills["workers"]
