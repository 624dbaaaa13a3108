"""An edited method file: tables show its newest version and list older ones apart; `remove` removes them."""

from __future__ import annotations

import re
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner, Result

import driftline
from driftline.cli.main import app
from driftline.errors import UserError
from driftline.io.checksums import read_checked, write_checked
from driftline.record.run import RUNTIME
from driftline.report.analysis.groups import groups
from driftline.store.store import Store

pytestmark = pytest.mark.xdist_group("versions")  # what all its tests use is made once

OWN = """
from dataclasses import dataclass
from driftline.learners.supervised.erm import ERM

@dataclass
class Own(ERM):
    "Mine."
    an_option_with_a_very_long_name_that_fills_the_line: float = 0.0
"""
SPEC: dict[str, Any] = {
    "benchmark": "timeline",
    "data": {"name": "digits", "periods": 3},
    "model": "logistic-regression",
    "methods": ["erm", "own.py:Own"],
    "seeds": 2,
    "timeline": {"resamples": 10},
}


@pytest.fixture(scope="module")
def edited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store in which a method was run, edited and run again."""
    folder = tmp_path_factory.mktemp("edited")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        (folder / "own.py").write_text(OWN)
        driftline.run(SPEC, runs="s")
        (folder / "own.py").write_text(f"{OWN}\n# edited\n")
        driftline.run(SPEC, runs="s")
    return folder


@pytest.fixture
def here(edited: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(edited, tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    return tmp_path / "copy"


def printed(*arguments: str, code: int = 0) -> str:
    result: Result = CliRunner().invoke(app, [*arguments, "--runs", "s"])
    assert result.exit_code == code, result.output
    return result.stdout


def versions() -> list[tuple[str, str]]:
    """The key and the hash of the file, of each run of the method with seed 0, the older one first."""
    runs = [run for run in Store.open("s").record().runs if run.method == "own.py:Own" and run.seed == 0]
    return [(run.key, run.card.user_files["own.py"]) for run in sorted(runs, key=lambda run: run.finished_at)]


def test_tables_show_the_newest_version_and_list_older_ones_apart(here: Path) -> None:
    (older, older_hash), (newer, _) = versions()
    first, second = groups(Store.open("s").record())
    assert [first.methods, second.methods] == [("erm", "own.py:Own"), ("own.py:Own",)]
    assert newer in first.labels
    assert older in second.labels
    assert re.search(rf" · older own.py={older_hash[:7]} \(\d{{4}}-\d\d-\d\d \d\d:\d\d\)$", second.title)
    assert second.title not in first.title
    text = printed("table")
    assert text.count("| Own |") == 2
    assert text.count("### ") == 2
    for way in (["--format", "latex"], ["--format", "csv"], ["--compare"]):
        assert "Own" in printed("table", *way)
    assert printed("table", "--compare", "--format", "csv").count("own.py:Own") == printed(
        *("table", "--compare", "--format", "csv", *(run.key for run in first.runs))
    ).count("own.py:Own"), "older versions are compared with nothing"
    printed("report", "-o", "page.html")
    assert f"older own.py={older_hash[:7]}" in Path("page.html").read_text(encoding="utf-8")


def test_curves_draw_older_versions_in_a_panel_of_their_own(here: Path) -> None:
    printed("figure", "curves", "-o", "curves.html")
    drawn = {panel: set(rows["method"]) for panel, rows in pd.read_csv("curves.csv").groupby("panel", sort=True)}
    newest, older = groups(Store.open("s").record())
    assert drawn == {newest.title: {"erm", "Own"}, older.title: {"Own"}}


def test_diff_names_the_file_that_changed(here: Path) -> None:
    (older, older_hash), (newer, newer_hash) = versions()
    text = printed("diff", older, newer)
    assert re.search(rf"user_files\.own\.py\s+{older_hash[:7]}\s+{newer_hash[:7]}\s", text)
    assert "scores.parquet" not in text


def test_a_name_that_fits_two_versions_is_answered_with_what_differs(here: Path) -> None:
    with pytest.raises(UserError) as error:
        Store.open("s").find("own.py:Own:0")
    for key, content in versions():
        finished_at = rf"made \d{{4}}-\d\d-\d\d \d\d:\d\d with own.py {content[:7]}"
        assert re.search(rf"{key[:12]} \([^)]*, {finished_at}\)", str(error.value))


def test_list_runs_cuts_no_name_and_says_when(here: Path) -> None:
    driftline.run(
        {
            "benchmark": "timeline",
            "data": {"name": "digits", "periods": 3},
            "model": "logistic-regression",
            "methods": [
                {"name": "own.py:Own", "an_option_with_a_very_long_name_that_fills_the_line": value}
                for value in (1.25, 1.75)
            ],
            "timeline": {"resamples": 10},
        },
        runs="s",
    )
    lines = printed("list", "runs").splitlines()
    assert len([line for line in lines if "fills_the_line=1.25)" in line]) == 1
    assert len([line for line in lines if "fills_the_line=1.75)" in line]) == 1
    assert all(re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d", line) for line in lines[1:])


def test_forget_removes_what_is_superseded(here: Path) -> None:
    store = Store.open("s")
    (older, _), (newer, _) = versions()
    before = len(store.runs())
    assert "2 run(s) would be removed" in printed("remove", "--superseded", "--dry-run")
    refused = CliRunner().invoke(app, ["remove", "--superseded", "--runs", "s"])
    assert isinstance(refused.exception, UserError)
    assert "--yes" in str(refused.exception)
    assert len(store.runs()) == before
    text = printed("remove", "--superseded", "--yes")
    assert older in text
    assert newer not in text
    assert len(store.runs()) == before - 2
    assert len(groups(store.record())) == 1
    assert "no run to remove" in printed("remove", "--superseded")


def test_forget_refuses_a_run_of_another_store(here: Path) -> None:
    (older, _), _ = versions()
    Store.create("other")
    refused = CliRunner().invoke(app, ["remove", f"s/runs/{older}", "--yes", "--runs", "other"])
    assert "is not in other" in str(refused.exception)
    assert Store.open("s").has(older)


def test_forget_removes_named_and_old_runs(here: Path) -> None:
    store = Store.open("s")
    (older, _), (newer, _) = versions()
    printed("remove", older[:10], newer, "--yes")
    assert not store.has(older)
    assert not store.has(newer)
    left = store.runs()
    path = left[0].folder / RUNTIME
    old = (datetime.now(UTC) - timedelta(days=40)).isoformat()
    write_checked(path, {**read_checked(path), "finished": old})
    assert "no run to remove" in printed("remove", "--older-than", "50d")
    printed("remove", "--older-than", "30d", "--yes")
    assert [run.key for run in store.runs()] == [run.key for run in left[1:]]


@pytest.mark.parametrize("wrong", [[], ["erm:0", "--superseded"], ["--older-than", "soon"], ["nothing"]])
def test_forget_refuses_what_it_cannot_use(here: Path, wrong: list[str]) -> None:
    result = CliRunner().invoke(app, ["remove", *wrong, "--runs", "s", "--yes"])
    assert isinstance(result.exception, UserError)
    assert len(Store.open("s").runs()) == 6


def test_the_version_that_was_used_last_is_the_newest(here: Path) -> None:
    (first, first_hash), (second, second_hash) = versions()
    (here / "own.py").write_text(OWN)
    driftline.run(SPEC, runs="s")
    newest, older = groups(Store.open("s").record())
    assert first in newest.labels
    assert second in older.labels
    assert f"older own.py={second_hash[:7]}" in older.title
    listed = printed("remove", "--superseded", "--dry-run")
    assert second in listed
    assert first not in listed
    (here / "own.py").write_text(f"{OWN}\n# edited\n")
    driftline.run(SPEC, runs="s")
    assert first in printed("remove", "--superseded", "--yes")
    assert "0 damaged" in printed("check")
    assert first_hash not in {content for _, content in versions()}
