"""Conditions are read, never run; and the command line turns them into exit codes."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from driftline.auditing import audit, gate
from driftline.auditing.examples import table
from driftline.auditing.frame import read_frame
from driftline.auditing.table import Limits, prepare
from driftline.cli.main import main
from driftline.errors import DiskError, UserError

NUMBERS = {"tas": 0.8, "sh": 2.0, "dh": None}


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("tas<0.9", True),
        ("tas < .8", False),
        ("tas<=0.8", True),
        ("sh>2", False),
        ("SH >= 2e0", True),
        ("tas<0.1 or sh>1", True),
        ("tas<0.9 and sh>2", False),
        ("sh>2 and tas<1 or tas>-1", True),
    ],
)
def test_conditions(condition: str, holds: bool) -> None:
    assert gate.fails(condition, NUMBERS) is holds


@pytest.mark.parametrize("bad", ["tas", "tas<", "0.9>tas", "__import__('os')<1", "tas<0.9; rm", "tas==1", "", "tas<sh"])
def test_anything_else_is_refused(bad: str) -> None:
    with pytest.raises(UserError, match="cannot read"):
        gate.check(bad)
    with pytest.raises(UserError, match="cannot read"):
        gate.fails(bad, NUMBERS)


def test_unknown_names_and_unknown_values() -> None:
    with pytest.raises(UserError, match="Did you mean 'tas'"):
        gate.fails("tsa<1", NUMBERS)
    with pytest.raises(UserError, match="could not determine dh"):
        gate.fails("dh<1", NUMBERS)


@pytest.fixture
def driftline(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Callable[..., tuple[int, str, str]]:
    monkeypatch.chdir(tmp_path)
    table("concept", rows=400).to_csv("t.csv", index=False)

    def command(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["driftline", "audit", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        output = capsys.readouterr()
        return int(ended.value.code or 0), output.out, output.err

    return command


GOOD = (
    "t.csv",
    "--time",
    "when",
    "--target",
    "y",
    "--model",
    "logistic-regression",
    "--period",
    "100 rows",
    "--jobs",
    "1",
)


def test_the_gate_is_an_exit_code(driftline: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    code, out, err = driftline(*GOOD, "--quick", "--fail-if", "tas<0.99", "-o", "a.html", "--json", "a.json", "--quiet")
    assert code == 1
    found = json.loads((tmp_path / "a.json").read_text())["gate_values"]
    ends = f"[{found['tas_low']:.4g}, {found['tas_high']:.4g}]"
    assert err.strip() == f"gate failed: tas<0.99 (tas = {found['tas']:.6g} {ends})"
    assert out.startswith("Retrain\nThe relation between inputs and target changed around 1 Jul 2024.")
    assert "Recommended" in (tmp_path / "a.html").read_text()
    assert found["tas"] < 0.99


def test_a_passed_gate_and_progress(driftline: Callable[..., tuple[int, str, str]]) -> None:
    code, out, err = driftline(*GOOD, "--fail-if", "tas<0.01", "--features", "a,b,color", "--column", "color=ignore")
    assert code == 0
    numbers = json.loads(Path("audit.json").read_text(encoding="utf-8"))
    assert numbers["data"]["features"] == ["a", "b"]
    assert [column["kind"] for column in numbers["data"]["columns"]] == ["number", "number", "ignore"]
    assert numbers["provenance"]["command"].startswith("driftline audit t.csv --time when --target y")
    assert "--column color=ignore" in numbers["provenance"]["command"]
    assert "page with charts: audit.html" in out
    assert "all numbers: audit.json" in out
    assert "gate passed: not tas<0.01 (tas = 0." in out
    assert json.loads(Path("audit.json").read_text(encoding="utf-8"))["gate_values"]["periods"] > 1
    assert "retraining policy replayed: on-error-rate" in err
    lines = err.strip().splitlines()
    assert lines[0].startswith("t.csv: ")
    assert "model logistic-regression" in lines[0]
    count = len(lines) - 1
    assert lines[-1].startswith(f"[{count}/{count}] "), "the last line says that all is done"


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--fail-if", "tas<"], "cannot read 'tas<'"),
        (["--fail-if", "tsa<1"], "Did you mean 'tas'"),
        (["--predictions", "y2"], "not both"),
        (["--features", "a,zz"], "no column of t.csv 'zz'"),
        (["--column", "color"], "--column takes NAME=KIND"),
        (["--column", "color=numbr"], "no kind of column 'color': 'numbr'. Did you mean 'number'"),
    ],
)
def test_bad_input_is_exit_code_2(
    driftline: Callable[..., tuple[int, str, str]], more: list[str], sentence: str
) -> None:
    code, _, err = driftline(*GOOD, *more, "--quiet")
    assert code == 2
    assert sentence in err
    assert len(err.strip().splitlines()) == 1


def test_a_misspelt_name_is_found_before_any_work() -> None:
    with pytest.raises(UserError, match=r"no number 'tsa'\. Did you mean 'tas'"):
        gate.check("sh<2 OR tsa<0.9")
    gate.check("tas_low<0.9 AND gain>0 or aged>0")


PRODUCTION = """
from sklearn.compose import make_column_transformer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

def make():
    encode = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["color"]), remainder="passthrough")
    return make_pipeline(encode, DecisionTreeClassifier(max_depth=4, random_state=0))

def search():
    return GridSearchCV(make(), {"decisiontreeclassifier__max_depth": [4]}, cv=2)
"""


def test_a_pipeline_with_named_columns_is_audited_as_in_python(
    driftline: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    (tmp_path / "prod.py").write_text(PRODUCTION)
    code, out, err = driftline(
        *GOOD[:5], "--model", "prod.py:make", *GOOD[7:], "--quick", "--json", "audit.json", "--quiet"
    )
    assert code == 0, err
    assert out.startswith("Retrain\n")
    content: dict[str, Any] = {}
    exec(PRODUCTION, content)
    expected = audit("t.csv", time="when", target="y", period="100 rows", model=content["make"](), quick=True)
    assert json.loads(Path("audit.json").read_text(encoding="utf-8"))["gate_values"] == expected.gate_values
    assert expected.gate_values["first_own"] > 0.8  # type: ignore[operator]


def test_a_search_around_a_pipeline_gets_named_columns_too(tmp_path: Path) -> None:
    (tmp_path / "prod.py").write_text(PRODUCTION)
    frame = read_frame(table("none", rows=200), time="when", target="y")
    prepared = prepare(frame, f"{tmp_path}/prod.py:search", "50 rows", 0, 0, Limits(), None)
    rows = prepared.periods[0]
    assert (prepared.answer(prepared.fit(rows), rows).prediction == rows.y).mean() > 0.8


def test_the_answers_are_shown_even_if_nothing_can_be_written(
    driftline: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*given: object) -> None:
        raise DiskError("no space left on the disk")

    for name in ("write_bytes", "write_json"):
        monkeypatch.setattr(f"driftline.auditing.result.{name}", full)
    table(rows=200).assign(logged="yes").to_csv("log.csv", index=False)
    options = ("--time", "when", "--target", "y", "--predictions", "logged", "--features", "a", "--period", "50 rows")
    code, out, err = driftline("log.csv", *options, "--jobs", "1", "--quiet")
    assert code == 2
    assert "logged" in out
    assert err.strip() == "driftline: no space left on the disk"
