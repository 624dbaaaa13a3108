"""What a driver writes down about its sweep is what happened, and tells the living from the dead."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from driftline.engine.executors import status
from driftline.engine.executors.base import Event
from driftline.engine.executors.status import DEAD_AFTER, StatusFile, SweepStatus, read_statuses
from driftline.store.store import Store

from ..stand_ins import pretraining, run


def test_events_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(status.time, "time", lambda: 100.0 if clock[0] == 100.0 else -5e8)  # the clock is set back
    monkeypatch.setattr(status.time, "monotonic", lambda: clock[0] + 7)
    store = Store.create(tmp_path)
    reused, up, a, b, c = run("r"), pretraining("u"), run("a"), run("b"), run("c")
    with StatusFile(store, [reused, up, a, b, c], [up, a, b, c], 1) as book:
        book.record(Event("started", up))
        clock[0] = 104.0
        for event in (Event("finished", up), Event("started", a), Event("started", b)):
            book.record(event)
        clock[0] = 106.0
        book.record(Event("advanced", a, 30, 100))  # it was resumed
        clock[0] = 107.0
        book.record(Event("advanced", a, 40, 100))
        book.record(Event("failed", b, reason="no"))
        book.record(Event("failed", c, reason="a stage it needs failed"))
        book.write()
        ((sweep, _),) = read_statuses(store)
        assert (sweep.reused, sweep.computed, sweep.failed) == (1, 1, {"b": "b seed 0", "c": "c seed 0"})
        assert sweep.waiting == {"pretrain": 0, "run": 0}
        assert sweep.durations == {"pretrain": (1, 4.0)}
        (running,) = sweep.running.values()
        assert (running.name, running.since, running.first, running.first_at) == ("a seed 0", 104.0, 30, 106.0)
        assert (running.done, running.total) == (40, 100)
        assert sorted(sweep.runs) == ["a", "b", "c", "r"]
        assert not sweep.ended
    ((sweep, _),) = read_statuses(store)
    assert sweep.ended
    assert len(list((tmp_path / "status").iterdir())) == 1, "nothing half-written is left"


def test_the_same_plan_has_one_file(tmp_path: Path) -> None:
    store = Store.create(tmp_path)
    for plan in (["a"], ["a"], ["a", "b"]):
        with StatusFile(store, [run(key) for key in plan], [], 0):
            pass
    assert [sorted(sweep.runs) for sweep, _ in read_statuses(store)] == [["a"], ["a", "b"]]


def test_the_dead_are_told_from_the_living() -> None:
    here, gone = SweepStatus(0.0), subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert here.is_alive(last_seen=1000.0, now=1001.0)
    assert not here.is_alive(last_seen=1000.0, now=1000.0 + DEAD_AFTER), "its process number was given to another"
    assert not SweepStatus(0.0, ended=True).is_alive(1000.0, 1001.0)
    assert not SweepStatus(0.0, pid=gone.pid).is_alive(1000.0, 1001.0)
    assert SweepStatus(0.0, pid=gone.pid, host=f"not-{platform.node()}").is_alive(1000.0, 1001.0), (
        "nobody can ask there"
    )


def test_a_file_that_cannot_be_written_disturbs_nothing(tmp_path: Path) -> None:
    store = Store.create(tmp_path)
    (tmp_path / "status").write_text("a file where a folder should be")
    with StatusFile(store, [run("a")], [run("a")], 0) as book:
        book.record(Event("started", run("a")))
        book.write()
    assert read_statuses(store) == []


def test_what_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    store = Store.create(tmp_path)
    (tmp_path / "status").mkdir()
    (tmp_path / "status" / "a.json").write_text("{")
    (tmp_path / "status" / "b.json").write_text('{"running": {}, "durations": {}, "of a newer version": 1}')
    assert read_statuses(store) == []
    assert os.listdir(tmp_path / "status") != []
