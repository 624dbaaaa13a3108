"""A spec that was carried out whole is not planned again, unless anything that it rests on has changed."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from subprocess import run as command
from typing import Any

import pytest

import driftline
from driftline import handed
from driftline.data import weights_file
from driftline.engine import run as engine_run
from driftline.errors import UserError
from driftline.store import Store

SPEC: dict[str, Any] = {
    "benchmark": "timeline",
    "data": {"name": "digits", "periods": 3},
    "model": "logistic",
    "methods": ["erm"],
    "timeline": {"draws": 10},
}
OWN = """
from dataclasses import dataclass
from driftline.learners.erm import ERM

@dataclass
class Own(ERM):
    pass
"""


class Planned(Exception):
    """The spec was planned."""


@pytest.fixture
def no_plan(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Call it, and planning is seen."""

    def refuse(*_: Any) -> None:
        raise Planned

    return lambda: monkeypatch.setattr(engine_run, "plan", refuse)


def test_the_second_time_nothing_is_planned_and_the_record_is_the_same(tmp_path: Path, no_plan: Any) -> None:
    first = driftline.run(SPEC, runs=tmp_path)
    no_plan()
    assert [run.key for run in driftline.run(SPEC, runs=tmp_path).runs] == [run.key for run in first.runs]


@pytest.mark.parametrize("change", [{"seeds": 2}, {"data": {"name": "digits", "periods": 4}}, {"model": "linear"}])
def test_another_spec_is_planned(change: dict[str, Any], tmp_path: Path, no_plan: Any) -> None:
    driftline.run(SPEC, runs=tmp_path)
    no_plan()
    with pytest.raises(Planned):
        driftline.run({**SPEC, **change}, runs=tmp_path)


def test_a_run_that_is_gone_is_made_again(tmp_path: Path) -> None:
    (run,) = driftline.run(SPEC, runs=tmp_path).runs
    before = run.table("answers")
    shutil.rmtree(run.folder)
    (again,) = driftline.run(SPEC, runs=tmp_path).runs
    assert again.table("answers").equals(before)


def test_other_code_under_the_same_name_is_planned(tmp_path: Path, no_plan: Any) -> None:
    own = tmp_path / "own.py"
    own.write_text(OWN)
    spec = {**SPEC, "methods": [f"{own}:Own"]}
    driftline.run(spec, runs=tmp_path / "runs")
    own.write_text(OWN + "\n# changed\n")
    no_plan()
    with pytest.raises(Planned):
        driftline.run(spec, runs=tmp_path / "runs")


def test_a_spec_of_which_a_run_failed_has_none(tmp_path: Path) -> None:
    own = tmp_path / "own.py"
    own.write_text(OWN.replace("    pass", "    def learn(self, x, y):\n        raise ValueError('broken')"))
    with pytest.raises(UserError, match="broken"):
        driftline.run({**SPEC, "methods": ["erm", f"{own}:Own"]}, runs=tmp_path / "runs")
    assert not (tmp_path / "runs" / "receipts").exists()
    assert len(Store.open(tmp_path / "runs").record()) == 1


def test_from_the_command_line_a_finished_sweep_returns_without_loading_networks(tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("benchmark: timeline\ndata: {name: digits, periods: 3}\nmodel: linear\nmethods: [ft]\n")
    words = ["driftline", "run", str(recipe), "--runs", str(tmp_path / "runs")]
    ask = f"import sys; sys.argv = {words!r}\nfrom driftline.cli.main import main\n"
    ask += "try: main()\nexcept SystemExit as ended: print('torch' in sys.modules, ended.code)"
    first, second = (command([sys.executable, "-c", ask], capture_output=True, text=True) for _ in range(2))
    assert "1 stage(s) computed, 0 reused, 0 failed" in first.stdout
    assert first.stdout.endswith("True 0\n")
    assert "0 stage(s) computed, 1 reused, 0 failed" in second.stdout
    assert second.stdout.endswith("False 0\n")
    table = "### timeline"
    assert table in first.stdout
    assert first.stdout.split("1 stage(s)")[0] == second.stdout.split("0 stage(s)")[0], "the same table"


FADE = """
from dataclasses import dataclass
from driftline.shifts import Shift

@dataclass(frozen=True)
class Fade(Shift):
    amount: float = 10
    amounts = (1, 100)

    def images(self, images, labels, rng, white):
        return images * (1 - self.amount / 100)
"""


def test_another_shift_under_the_same_name_is_planned(tmp_path: Path, no_plan: Any) -> None:
    """Its file stands in the middle of a text."""
    own = tmp_path / "fade.py"
    own.write_text(FADE)
    few = {"sizes": [50, 50, 50], "test": 50, "oracle": 0, "epochs": 1, "lr": 1e-3, "weight_decay": 0, "dropout": 0}
    model = {"name": "conv-1", "width": 4}
    spec = {"benchmark": "seq-to-final", "data": "colour-digits", "model": model, "methods": ["baseline"], "seeds": 1}
    spec["seq-to-final"] = {**few, "shifts": f"C+{own}:Fade=20,R"}
    driftline.run(spec, runs=tmp_path / "runs")
    own.write_text(FADE.replace("1 - self", "2 - self"))
    no_plan()
    with pytest.raises(Planned):
        driftline.run(spec, runs=tmp_path / "runs")


def test_trials_that_were_spared_are_not_asked_for_also_if_the_receipt_is_written_later(
    tmp_path: Path, no_plan: Any
) -> None:
    few = {"episodes": 4, "size": 32, "period": 4, "upstream_set": 64, "held_out": 32, "upstream_updates": 50}
    search = {"grid": {"lr": [1e-6, 1e-2]}, "seeds": 3}
    model = {"name": "mlp", "width": 32}
    spec = {"benchmark": "refinement", "data": "digit-clusters", "model": model, "methods": ["cft"], "seeds": 1}
    spec |= {"selection": search, "refinement": {**few, "draws": 10}}
    (run,) = driftline.run(spec, runs=tmp_path).runs
    assert run.card["protocol"]["spared_trials"]
    shutil.rmtree(tmp_path / "receipts")
    driftline.run(spec, runs=tmp_path)
    no_plan()
    driftline.run(spec, runs=tmp_path)


def test_other_code_of_a_method_within_a_method_is_another_run(tmp_path: Path) -> None:
    own = tmp_path / "own.py"
    own.write_text(OWN.replace("erm", "ft").replace("ERM", "FineTune"))
    methods = [{"name": "resetting", "method": f"{own}:Own"}]
    spec = {
        **SPEC,
        "model": "linear",
        "methods": methods,
        "seeds": 1,
        "timeline": {"draws": 10, "upstream": 1, "upstream_updates": 20},
    }
    (first,) = driftline.run(spec, runs=tmp_path / "runs").runs
    own.write_text(own.read_text() + "\n# changed\n")
    (second,) = driftline.run(spec, runs=tmp_path / "runs").runs
    assert first.key != second.key


TEACHER = """
from dataclasses import dataclass
from driftline.learners.trained import Trained

@dataclass
class Teacher(Trained):
    def train(self, x, y):
        for _ in range(1):
            super().train(x, y)
"""


@pytest.mark.parametrize("named", [lambda own: own, lambda own: {"name": own}], ids=["text", "settings"])
def test_other_code_of_a_pretraining_makes_another_upstream_model(tmp_path: Path, named: Any) -> None:
    own = tmp_path / "my own.py"  # a space in a name must not hide it
    few = {"draws": 10, "upstream": 1, "upstream_updates": 5}
    method = {"name": "ncm", "pretraining": named(f"{own}:Teacher")}
    spec = {**SPEC, "model": "linear", "methods": [method], "seeds": 1, "timeline": few}
    own.write_text(TEACHER)
    (first,) = driftline.run(spec, runs=tmp_path / "runs").runs
    own.write_text(TEACHER.replace("range(1)", "range(3)"))
    (second,) = driftline.run(spec, runs=tmp_path / "runs").runs
    assert first.key != second.key
    assert second.card["compute"]["upstream_macs"] == 3 * first.card["compute"]["upstream_macs"] > 0


def test_a_text_too_long_for_a_name_names_no_file() -> None:
    assert handed.sources(300 * "a" + ".py:Own") == []
    assert weights_file(300 * "a") is None
