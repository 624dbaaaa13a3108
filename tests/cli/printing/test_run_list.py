"""The list of runs: by time, with status, score and a command that computes the run."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import sys
import time
from pathlib import Path

import pytest

from driftline.cli.main import main
from driftline.cli.printing.run_list import print_store_runs
from driftline.record.card import Card, write_card
from driftline.record.run import Run
from driftline.report.analysis.run_command import PYTHON, run_command
from driftline.store.store import Store

RUN = "driftline run timeline --data digits --model logistic-regression --methods erm,erm-all --seeds 2"
SETTINGS = "--set data.periods=4 --set timeline.resamples=20"


def call(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", shlex.split(command))
    with pytest.raises(SystemExit) as end:
        main()
    assert not end.value.code


def test_runs_are_listed_by_time_and_their_commands_compute_nothing_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    call(f"{RUN} {SETTINGS} -q", monkeypatch)
    store = Store.open(None)
    runs = sorted(store.record().runs, key=lambda run: run.finished_at)
    capsys.readouterr()
    print_store_runs(store)
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split() == ["run", "time", "status", "score", "name", "command"]
    assert [line.split()[0] for line in lines] == [run.key for run in runs]
    for line, run in zip(lines, runs, strict=True):
        scores = run.table("scores")
        ood = scores[(scores["metric"] == "ood") & (scores["stat"] == "mean")]["value"].item()
        assert f"  finished  ood {100 * ood:.1f}%  {run.method}:{run.seed} " in line
        assert f"--methods {run.card.run.method.name} --seeds {run.seed + 1} " in line
    call(lines[-1][lines[-1].index("driftline run") :], monkeypatch)
    assert "0 stage(s) computed" in capsys.readouterr().out
    for stream in (Terminal, io.StringIO):
        check_table(stream(), monkeypatch)


class Terminal(io.StringIO):
    """A standard output that is a terminal."""

    def isatty(self) -> bool:
        return True


def check_table(out: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal gets a drawn table that fits, a pipe Markdown; a named format is the same everywhere."""
    monkeypatch.setenv("COLUMNS", "70")
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", out)
        call("driftline table", patch)
        drawn = re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue())
        call("driftline table --format csv", patch)
    if out.isatty():
        assert max(map(len, drawn.splitlines())) <= 70
        assert "Definitions of the columns: --format md" in drawn
    else:
        assert "\n| :-- | " in drawn
    assert "\ngroup,method,metric,stat" in out.getvalue()


def command(card: Card, folder: Path) -> str:
    """The command of a finished run with this card."""
    write_card(folder, card)
    return run_command(Run(folder))


def card(**run: object) -> Card:
    parts = {"data": {"name": "digits"}, "model": {"name": "linear"}, "method": {"name": "er"}}
    return Card.model_validate({"label": "er", "run": {"benchmark": "timeline", **parts, "seed": 2, **run}})


def test_a_command_has_what_differs_from_the_defaults_and_quotes_it(tmp_path: Path) -> None:
    method = {"name": "own.py:Own", "settings": {"lr": 0.5, "note": "a b", "size": 3}}
    made = card(
        method=method,
        options={"period": "month", "delta": 0.9},
        data={"name": "table", "settings": {"path": "my file.csv"}},
        reveal={"delay": 2, "budget": None, "missing": 0.0},
        device={"precision": "bfloat16", "micro_batch": 4, "tf32": True},
        budget_macs=1000,
    ).model_copy(update={"label": "own.py:Own(lr=0.5, note=a b)"})
    assert command(made, tmp_path) == (
        "driftline run timeline --data table --model linear --methods own.py:Own --seeds 3 --budget-macs 1000 "
        "--precision bfloat16 "
        "--set 'data.path=my file.csv' --set timeline.period=month --set own.py:Own.lr=0.5 "
        "--set 'own.py:Own.note=a b' --set device.micro_batch=4 --set device.tf32=true --set reveal.delay=2"
    )


def test_runs_of_python_objects_and_of_searches_say_so(tmp_path: Path) -> None:
    searched = command(card(search={"rule": "oracle"}), tmp_path)
    assert searched.endswith("--seeds 3  # and the selection of its spec")
    assert command(card(model={"name": "Net@0123456789abcdef"}), tmp_path) == PYTHON


def test_failed_running_and_interrupted_runs_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = Store.create(tmp_path)
    store.fail("a" * 16, {"label": "er", "seed": 1, "method": {"name": "er"}}, "no memory")
    (tmp_path / "status").mkdir()
    for key, alive in (("b", True), ("c", False)):
        store.work_folder(key).mkdir(parents=True)
        running = {key: {"name": f"{key} seed 0", "kind": "run", "since": time.time()}}
        content = {"began": 0.0, "running": running, "runs": {key: f"{key} seed 0", "later": "later seed 0"}}
        content |= {"durations": {}, "ended": not alive, "pid": os.getpid()}
        (tmp_path / f"status/{key}.json").write_text(json.dumps(content))
    print_store_runs(store)
    out = capsys.readouterr().out
    states = {line.split()[0]: line.split()[3] for line in out.splitlines() if line.startswith(("a", "b", "c"))}
    assert states == {"a" * 16: "failed", "b": "running", "c": "interrupted"}
    assert "later" not in out, "a run that has not begun has no status"
    assert "failed: er seed 1: no memory" in out
    assert "no finished run" in out
