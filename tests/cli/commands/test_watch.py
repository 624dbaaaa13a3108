"""`driftline watch` as a user meets it: once, in a log, on a terminal, and with nothing to see."""

from __future__ import annotations

import io
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from rich.console import Console

from driftline.cli.commands import watch as watch_module
from driftline.cli.main import main
from driftline.engine.executors.status import RunningStage, SweepStatus
from driftline.store.store import Store

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["driftline", "watch", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        return int(ended.value.code or 0), printed.out, printed.err

    return call


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A sweep that advances each time the watcher sleeps, and ends after three times."""
    store, now = Store.create(tmp_path / "store"), time.time()
    (store.folder / "status").mkdir()
    stage = RunningStage("ft seed 0", "run", now, total=40, first_at=now)

    def write(naps: int) -> None:
        running = {} if naps >= 3 else {"k": replace(stage, done=10 * naps)}
        sweep = SweepStatus(now, computed=int(naps >= 3), running=running, runs={"k": "ft seed 0"}, ended=naps >= 3)
        (store.folder / "status" / "a.json").write_text(json.dumps(asdict(sweep)))

    naps: list[float] = []

    def nap(seconds: float) -> None:
        naps.append(seconds)
        write(len(naps))

    write(0)
    monkeypatch.setattr(watch_module.time, "sleep", nap)
    return store


def test_once_is_one_picture(command: Command, store: Store) -> None:
    code, output, _ = command(str(store.folder), "--once")
    assert code == 0
    first, _, stage = output.splitlines()
    assert first == "0 of 1 stages done (0 reused), 0 failed, 1 running, 0 waiting; time left not known yet"
    assert stage.startswith("  ft seed 0  ")
    assert stage.endswith(" 0/40")


def test_a_log_gets_a_line_when_something_changes_and_the_end(command: Command, store: Store) -> None:
    code, output, _ = command("--runs", str(store.folder))
    assert code == 0
    before, after = output.splitlines()
    assert before.startswith("0 of 1 stages done"), "said once, though it was looked at three times"
    assert after == "1 of 1 stages done (0 reused), 0 failed; ended"


@pytest.mark.parametrize("plain", [True, False])
def test_a_terminal_is_redrawn_until_nothing_runs(store: Store, plain: bool) -> None:
    screen = io.StringIO()
    watch_module._live(store, Console(file=screen, force_terminal=True, width=60, height=20), plain)
    drawn = screen.getvalue()
    for done in ("0/40", "10/40", "20/40"):
        assert f" {done}" in drawn
    assert ("######......" in drawn) == plain
    assert "1 of 1 stages done (0 reused), 0 failed; ended" in drawn


def test_a_folder_that_is_not_there(command: Command, tmp_path: Path) -> None:
    code, _, output = command(str(tmp_path / "none"))
    assert code == 2
    assert "name the folder of the runs with --runs" in output


def test_blocks_are_drawn_where_they_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    assert not watch_module._supports_unicode(Console(file=io.StringIO(), force_terminal=True))
    monkeypatch.setenv("TERM", "xterm")
    assert watch_module._supports_unicode(Console(file=io.StringIO(), force_terminal=True))
    ascii_only = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    assert not watch_module._supports_unicode(Console(file=ascii_only, force_terminal=True))
