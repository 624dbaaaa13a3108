"""`driftline recipes` as a user meets it: what there is, what it needs, and a copy to edit."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from driftline import recipes
from driftline.cli.main import main
from driftline.spec import read

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def driftline(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run a command in this process: exit code, what it printed, what it complained about."""

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["driftline", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        printed = capsys.readouterr()
        return int(end.value.code or 0), printed.out, printed.err

    return run


def test_the_list_says_what_is_run_and_what_is_missing(driftline: Command, tmp_path: Path) -> None:
    (tmp_path / "yearbook.h5").touch()
    code, out, _ = driftline("recipes", "--data-dir", str(tmp_path))
    assert code == 0
    blocks = dict(block.split(": ", 1) for block in out.strip().split("\n\n"))
    assert list(blocks) == recipes.names()
    assert blocks["refinement/digits.cpu"].splitlines() == [
        "CMR Table 1 at small scale",
        "  refinement on digit-clusters with mlp, methods: 17, seeds: 8",
        blocks["refinement/digits.cpu"].splitlines()[-1],
    ]
    assert blocks["refinement/digits.cpu"].splitlines()[-1].startswith("  cost: 424 runs, 991 GMACs, ")
    cifar = "cifar-10-batches-py (cifar-10-python.tar.gz from https://www.cs.toronto.edu/~kriz/cifar.html)"
    assert f"\n  missing: {cifar}\n" in blocks["seq-to-final/table-8.full"]
    cost = blocks["test-time/ccc-hard.full"].partition("\n  cost: 30 runs, ")[2]
    assert "(estimate by a formula of 20" in cost
    assert "\n  here: yearbook.* or " in blocks["timeline/wild-time-table-2-yearbook.full"]
    assert "missing: mrqa/train/SQuAD.jsonl.gz, mrqa/dev/SQuAD.jsonl.gz, " in blocks["refinement/qa.full"]


def test_one_recipe_is_printed_as_a_spec_to_edit(driftline: Command, tmp_path: Path) -> None:
    code, out, _ = driftline("recipes", "refinement/digits.cpu")
    assert code == 0
    (tmp_path / "mine.yaml").write_text(out)
    assert read(tmp_path / "mine.yaml") == read("recipe:refinement/digits.cpu")


def test_a_recipe_with_a_base_is_printed_in_full(driftline: Command, tmp_path: Path) -> None:
    code, out, _ = driftline("recipes", "test-time/ccc-hard.full")
    assert code == 0
    assert "base:" not in out
    assert "\nmethods: [frozen, bn, tent, rpl, slr, cpl, cotta, eta, eata, rdumb]\n" in out
    (tmp_path / "mine.yaml").write_text(out)
    assert read(tmp_path / "mine.yaml") == read("recipe:test-time/ccc-hard.full")


def test_stored_forecasts_count_the_runs_of_their_recipes() -> None:
    found = {one.name: one for one in map(recipes.describe, recipes.names())}
    assert list(found) == sorted(recipes._costs()), "every recipe has a cost"
    for name, one in found.items():
        assert one.cost is not None
        assert one.cost.runs >= len(one.methods) * one.seeds  # and those of a search
        trains = name != "refinement/released-qa.cpu"  # which repeats published answers
        assert one.cost.macs > (1e12 if name.endswith(".full") else 1e9) or not trains
        assert one.cost.machine
    same = [found[f"seq-to-final/table-{number}.full"].cost for number in (8, 9, 10, 11, 14)]
    assert len({cost.macs for cost in same if cost}) == 1, "the same fits on other shifts"
    costs = [found[f"test-time/ccc-{difficulty}.full"].cost for difficulty in ("easy", "medium", "hard")]
    assert costs[0] == costs[1] == costs[2]


def test_json(driftline: Command, tmp_path: Path) -> None:
    listed = json.loads(driftline("recipes", "--format", "json", "--data-dir", str(tmp_path))[1])
    one = json.loads(driftline("recipes", "test-time/cin-c.full", "--format", "json", "--data-dir", str(tmp_path))[1])
    assert one == next(recipe for recipe in listed if recipe["name"] == "test-time/cin-c.full")
    assert (one["table"], one["benchmark"], one["data"]) == ("RDumb Table 1", "test-time", "imagenet-val")
    assert (len(one["methods"]), one["seeds"], one["present"]) == (10, 10, False)
    weights = {"files": ["resnet50-0676ba61.pth"], "source": "https://download.pytorch.org/models", "present": False}
    assert one["needs"][1] == weights


@pytest.mark.parametrize("command", [("recipes", ""), ("run", "recipe:"), ("plan", "recipe:")])
def test_an_unknown_recipe_is_one_sentence_with_the_nearest(driftline: Command, command: tuple[str, str]) -> None:
    code, _, err = driftline(command[0], f"{command[1]}refinement/digit.cpu")
    assert code == 2
    assert "no recipe 'refinement/digit.cpu'. Did you mean 'refinement/digits.cpu'?" in err


def test_flags_change_a_recipe_that_is_run_by_name(driftline: Command) -> None:
    name = "recipe:refinement/digits-beta-0.1.cpu"
    code, out, err = driftline("run", name, "--methods", "er", "--beta", "0.5", "--seeds", "2", "--print-spec")
    assert code == 0, err
    assert "beta: 0.5" in out
    assert "- er\nseeds:\n- 0\n- 1\n" in out
