"""`driftline monitor`: fit, check, exit codes and sentences."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from driftline.cli.main import app
from driftline.errors import UserError

RUNNER = CliRunner()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, random = tmp_path_factory.mktemp("monitor"), np.random.default_rng(0)
    x = random.normal(size=(900, 2))
    y = (np.where(np.arange(900) < 600, x[:, 0], -x[:, 0]) > 0).astype(int)
    when = pd.date_range("2024-01-01", periods=900, freq="h")
    table = pd.DataFrame({"when": when, "a": x[:, 0], "b": x[:, 1], "y": y})
    table[:400].to_csv(folder / "reference.csv", index=False)
    table[400:600].to_csv(folder / "quiet.csv", index=False)
    table[600:].to_csv(folder / "<b>changed.csv", index=False)
    return folder


def test_fit_then_check_until_an_alarm(files: Path) -> None:
    watch = files / "watch.json"
    fit = ["monitor", "fit", str(files / "reference.csv"), "--time", "when", "--target", "y", "-o", str(watch)]
    made = RUNNER.invoke(app, [*fit, "--model", "logistic-regression"])
    assert made.exit_code == 0, made.output
    assert "400 rows" in made.output
    quiet = RUNNER.invoke(app, ["monitor", "check", str(files / "quiet.csv"), "--with", str(watch)])
    assert quiet.exit_code == 0, quiet.output
    assert "no alarm" in quiet.output
    changed = RUNNER.invoke(app, ["monitor", "check", str(files / "<b>changed.csv"), "--with", str(watch), "--quiet"])
    assert changed.exit_code == 1
    assert "alarm, quality" in changed.output
    assert "alarm, staleness" in changed.output
    page = watch.with_suffix(".html").read_text(encoding="utf-8")
    assert "&lt;b&gt;changed.csv" in page
    assert "<b>changed" not in page
    content = watch.read_text(encoding="utf-8")
    again = RUNNER.invoke(app, ["monitor", "check", str(files / "<b>changed.csv"), "--with", str(watch)])
    assert again.exit_code == 1
    assert "checked before" in again.output
    assert watch.read_text(encoding="utf-8") == content


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["check", "quiet.csv", "--with", "nowhere.json"], "no watch file"),
        (["fit", "absent.csv", "--time", "when", "--target", "y"], "absent.csv"),
        (["fit", "reference.csv", "--time", "wen", "--target", "y"], "when"),
        (["fit", "reference.csv", "--time", "when", "--target", "y", "--id", "key"], "'key'"),
        (["fit", "reference.csv", "--time", "when", "--target", "y", "--metric", "rmse"], "rmse"),
        (["fit", "reference.csv", "--time", "when", "--target", "y", "--column", "a"], "NAME=KIND"),
    ],
)
def test_bad_input_is_a_sentence(
    files: Path, arguments: list[str], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files)
    result = RUNNER.invoke(app, ["monitor", *arguments])
    assert isinstance(result.exception, UserError)
    assert sentence in str(result.exception)
    assert not (files / "nowhere.json.lock").exists()
