"""`driftline export` as a user meets it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

import driftline
from driftline.cli.main import main
from driftline.record.run import Record

pytestmark = pytest.mark.xdist_group("export")  # what all its tests use is made once

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Record:
    data = {"name": "digits", "periods": 3}
    spec = {"benchmark": "timeline", "data": data, "model": "logistic-regression", "methods": ["erm", "erm-all"]}
    return driftline.run({**spec, "timeline": {"resamples": 5}}, runs=tmp_path_factory.mktemp("runs"))


@pytest.fixture
def command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], record: Record, tmp_path: Path
) -> Command:
    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("DRIFTLINE_RUNS", str(record.runs[0].folder.parent.parent))
        monkeypatch.setattr(sys, "argv", ["driftline", "export", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        return int(ended.value.code or 0), printed.out, printed.err

    return call


def test_all_runs_to_csv(command: Command, record: Record, tmp_path: Path) -> None:
    code, output, _ = command("--to", "csv")
    assert code == 0
    assert output.splitlines()[0] == "2 run(s) exported to driftline-csv"
    frame = pd.concat(pd.read_csv(path) for path in (tmp_path / "driftline-csv").glob("*.csv"))
    means = frame[frame["name"] == "final/id mean"].set_index("method")["value"]
    scores = record.scores
    ours = scores[(scores["metric"] == "id") & (scores["stat"] == "mean")].set_index("method")["value"]
    assert means.to_dict() == pytest.approx(ours.to_dict())


def test_one_run_to_a_folder(command: Command, record: Record, tmp_path: Path) -> None:
    key = record.runs[1].key
    code, output, _ = command(key[:6], "--to", "parquet", "-o", "there")
    assert code == 0
    assert output.startswith("1 run(s) exported to there")
    assert [path.name for path in (tmp_path / "there").iterdir()] == [f"{key}.parquet"]


def test_refusals_are_sentences(command: Command, tmp_path: Path) -> None:
    assert command("--to", "mlfow")[0] == 2
    code, _, output = command("--to", "parquets")
    assert "no exporter 'parquets'. Did you mean 'parquet'?" in output
    code, _, output = command("--to", "csv", "--runs", str(tmp_path / "none"))
    assert code == 2
    assert "no finished run in" in output
