"""What a driver writes down about its sweep is what happened, and tells the living from the dead."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from driftline.engine import logbook
from driftline.engine.execute import Event
from driftline.engine.logbook import PATIENCE, Logbook, Sweep, sweeps
from driftline.engine.stages import Stage
from driftline.store import Store


def stage(key: str, kind: Any = "deploy") -> Stage:
    return Stage(key, kind, {"label": key, "seed": 0})


def test_events_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(logbook.time, "time", lambda: 100.0 if clock[0] == 100.0 else -5e8)  # the clock is set back
    monkeypatch.setattr(logbook.time, "monotonic", lambda: clock[0] + 7)
    store = Store.create(tmp_path)
    reused, up, a, b, c = stage("r"), stage("u", "upstream"), stage("a"), stage("b"), stage("c")
    with Logbook(store, [reused, up, a, b, c], [up, a, b, c], 1) as book:
        book.note(Event("started", up))
        clock[0] = 104.0
        for event in (Event("finished", up), Event("started", a), Event("started", b)):
            book.note(event)
        clock[0] = 106.0
        book.note(Event("advanced", a, 30, 100))  # it was resumed
        clock[0] = 107.0
        book.note(Event("advanced", a, 40, 100))
        book.note(Event("failed", b, reason="no"))
        book.note(Event("failed", c, reason="a stage it needs failed"))
        book.write()
        ((sweep, _),) = sweeps(store)
        assert (sweep.reused, sweep.computed, sweep.failed) == (1, 1, {"b": "b seed 0", "c": "c seed 0"})
        assert sweep.waiting == {"upstream": 0, "deploy": 0}
        assert sweep.took == {"upstream": (1, 4.0)}
        (running,) = sweep.running.values()
        assert (running.name, running.since, running.first, running.first_at) == ("a seed 0", 104.0, 30, 106.0)
        assert (running.done, running.of) == (40, 100)
        assert sorted(sweep.runs) == ["a", "b", "c", "r"]
        assert not sweep.ended
    ((sweep, _),) = sweeps(store)
    assert sweep.ended
    assert len(list((tmp_path / "sweeps").iterdir())) == 1, "nothing half-written is left"


def test_the_same_plan_has_one_file(tmp_path: Path) -> None:
    store = Store.create(tmp_path)
    for plan in (["a"], ["a"], ["a", "b"]):
        with Logbook(store, [stage(key) for key in plan], [], 0):
            pass
    assert [sorted(sweep.runs) for sweep, _ in sweeps(store)] == [["a"], ["a", "b"]]


def test_the_dead_are_told_from_the_living() -> None:
    here, gone = Sweep(0.0), subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert here.alive(heard=1000.0, now=1001.0)
    assert not here.alive(heard=1000.0, now=1000.0 + PATIENCE), "its process number was given to another"
    assert not Sweep(0.0, ended=True).alive(1000.0, 1001.0)
    assert not Sweep(0.0, pid=gone.pid).alive(1000.0, 1001.0)
    assert Sweep(0.0, pid=gone.pid, host=f"not-{platform.node()}").alive(1000.0, 1001.0), "nobody can ask there"


def test_a_file_that_cannot_be_written_disturbs_nothing(tmp_path: Path) -> None:
    store = Store.create(tmp_path)
    (tmp_path / "sweeps").write_text("a file where a folder should be")
    with Logbook(store, [stage("a")], [stage("a")], 0) as book:
        book.note(Event("started", stage("a")))
        book.write()
    assert sweeps(store) == []


def test_what_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    store = Store.create(tmp_path)
    (tmp_path / "sweeps").mkdir()
    (tmp_path / "sweeps" / "a.json").write_text("{")
    (tmp_path / "sweeps" / "b.json").write_text('{"running": {}, "took": {}, "of a newer version": 1}')
    assert sweeps(store) == []
    assert os.listdir(tmp_path / "sweeps") != []
