"""A failed run is recorded as failed, with its reason, and takes nothing else with it."""

from __future__ import annotations

import os
import runpy
import signal
import subprocess
from pathlib import Path

import pytest

import driftline
from driftline.engine.costs.profiler_process import _link
from driftline.engine.executors.config import ExecutorConfig
from driftline.engine.executors.local import LocalExecutor, exit_reason
from driftline.engine.executors.scheduler import schedule
from driftline.engine.planning.plan import plan
from driftline.engine.run import as_spec, run_plan
from driftline.engine.stages import Pretrain
from driftline.errors import DiskError, UserError
from driftline.store.store import Store

RAISES = """
from dataclasses import dataclass
from driftline.learners.supervised.ft import FineTune

@dataclass
class Mine(FineTune):
    at: int = 3
    def learn(self, x, y):
        super().learn(x, y)
        if self.training_rounds == self.at:
            {action}
"""


def spec(method: str) -> dict[str, object]:
    return {
        "benchmark": "timeline",
        "data": {"name": "digits", "periods": 6},
        "model": "linear",
        "methods": [{"name": "erm", "updates": 5}, {"name": method, "updates": 5}],
        "timeline": {"resamples": 10},
    }


def test_a_failure_that_is_overcome_while_it_is_looked_at_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store.create(tmp_path)
    store.fail("first", {}, "the moon was full")
    store.fail("second", {}, "the moon was full")
    look = Path.glob

    def glob(self: Path, pattern: str) -> list[Path]:
        found = list(look(self, pattern))
        store.clear_failure("first")
        return found

    monkeypatch.setattr(Path, "glob", glob)
    assert [failure["key"] for failure in store.failures()] == ["second"]


def test_a_method_that_raises_is_recorded_and_the_others_finish(tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text(RAISES.format(action="raise RuntimeError('the moon was full')"))
    store = Store.create(tmp_path / "store")
    planned = plan(as_spec(spec(f"{mine}:Mine")))
    summary = run_plan(planned, store)
    assert [stage.job.label for stage in summary.computed] == ["erm(updates=5)"]
    (failure,) = store.failures()
    assert failure["reason"] == "RuntimeError: the moon was full"
    assert "mine.py" in failure["traceback"]
    frame = store.query("select method, reason from failures")
    assert frame.loc[0, "reason"] == "RuntimeError: the moon was full"

    mine.write_text(RAISES.format(action="pass"))
    mended = plan(as_spec(spec(f"{mine}:Mine")))
    assert mended.run_keys[1] != planned.run_keys[1], "an edited file is another method"
    assert not run_plan(mended, store).failed


def test_a_worker_that_dies_fails_its_stage_only(quick_workers: None, tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text(RAISES.format(action="import os, signal; os.kill(os.getpid(), signal.SIGKILL)"))
    store = Store.create(tmp_path / "store")
    planned = plan(as_spec(spec(f"{mine}:Mine")))
    summary = run_plan(planned, store, config=ExecutorConfig(jobs=2, retries=1))
    assert len(summary.computed) == 1
    died = "its worker process ended by SIGKILL, perhaps for lack of memory"
    assert set(summary.failed.values()) == {f"{died}, 2 times"}, "it was tried again once"
    assert set(map(tuple, summary.retried.values())) == {(died,)}
    assert len(store.failures()) == 1


def test_what_needs_a_failed_stage_fails_with_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:

    def broken(*args: object) -> None:
        raise UserError("no upstream today")

    monkeypatch.setattr(Pretrain, "compute", broken)
    store = Store.create(tmp_path)
    planned = plan(as_spec({**spec("ft"), "timeline": {"upstream": 1, "upstream_updates": 20, "resamples": 10}}))
    summary = run_plan(planned, store)
    assert not summary.computed
    runs = [summary.failed[key] for key in planned.run_keys]
    assert runs == ["a stage it needs failed: no upstream today"] * 2
    assert len(store.failures()) == 3


def test_python_run_raises_with_the_reason(tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text(RAISES.format(action="raise ValueError('odd')"))
    with pytest.raises(UserError, match=r"1 run\(s\) failed: ValueError: odd"):
        driftline.run(spec(f"{mine}:Mine"), runs=tmp_path / "store")


def test_closing_a_worker_does_not_record_a_failure(tmp_path: Path) -> None:
    store = Store.create(tmp_path)
    planned = plan(as_spec({**spec("ft"), "methods": [{"name": "ft", "updates": 100_000}]}))
    worker = LocalExecutor(store, None)

    def stop(event: object) -> None:
        if getattr(event, "kind", "") == "advanced":
            worker.close()

    summary = schedule(planned.stages, store, [worker], stop)
    assert not summary.computed
    assert not summary.failed
    assert store.failures() == []


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk needs root")
def test_a_full_disk_is_said_and_loses_nothing(quick_workers: None, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "none", str(disk)], capture_output=True).returncode:
        pytest.skip("this machine does not let tests mount a small disk")
    try:
        store = Store.create(disk)
        small = plan(as_spec({**spec("ft"), "data": {"name": "digits", "periods": 3}}))
        summary = run_plan(small, store)
        kept = {path: path.read_bytes() for path in disk.glob("runs/*/*")}
        (disk / "filler").write_bytes(b"x" * 1_000)
        with pytest.raises(OSError, match="No space left"):
            (disk / "filler").write_bytes(b"x" * 8_000_000)
        for jobs in (1, 2):
            with pytest.raises(DiskError, match="the disk is full"):
                run_plan(plan(as_spec({**spec("ft"), "seeds": [9]})), store, ExecutorConfig(jobs=jobs))
        assert {path: path.read_bytes() for path in disk.glob("runs/*/*")} == kept
        assert not summary.failed
        (disk / "filler").unlink()
        record = driftline.run({**spec("ft"), "seeds": [9]}, runs=disk)
        elsewhere = driftline.run({**spec("ft"), "seeds": [9]}, runs=tmp_path / "elsewhere")
        assert record.answers.equals(elsewhere.answers), "with room again, the same command ends as if nothing had been"
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (3, "with exit code 3"),
        (-9, "by SIGKILL, perhaps for lack of memory"),
        (-15, "by SIGTERM"),
        (-35, "by signal 35"),  # a real-time signal, which has no name
    ],
)
def test_the_exit_of_a_process_is_described(code: int, text: str) -> None:
    assert exit_reason(code) == text


@pytest.mark.filterwarnings("ignore:.*found in sys.modules")
def test_windows_has_no_sigkill(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(signal, "SIGKILL")
    reloaded = runpy.run_module("driftline.engine.executors.local")
    assert reloaded["SIGKILL"] == 9
    assert reloaded["exit_reason"](1) == "with exit code 1"


def test_a_file_is_copied_where_links_are_forbidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path, target: Path) -> None:
        raise OSError("a required privilege is not held by the client")

    monkeypatch.setattr(Path, "symlink_to", refuse)
    (tmp_path / "a").write_bytes(b"weights")
    _link(tmp_path / "b", tmp_path / "a")
    assert (tmp_path / "b").read_bytes() == b"weights"
