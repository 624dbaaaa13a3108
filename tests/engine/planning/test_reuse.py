"""A run is reused unless anything that it depends on has changed."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import driftline
from driftline.data import weights_file
from driftline.engine.planning.plan import plan
from driftline.errors import UserError
from driftline.io import user_files
from driftline.spec import parse
from driftline.store.store import Store

SPEC: dict[str, Any] = {
    "benchmark": "timeline",
    "data": {"name": "digits", "periods": 3},
    "model": "logistic-regression",
    "methods": ["erm"],
    "timeline": {"resamples": 10},
}
OWN = """
from dataclasses import dataclass
from driftline.learners.supervised.erm import ERM

@dataclass
class Own(ERM):
    pass
"""


def test_a_run_that_is_gone_is_made_again(tmp_path: Path) -> None:
    (run,) = driftline.run(SPEC, runs=tmp_path).runs
    before = run.table("answers")
    shutil.rmtree(run.folder)
    (again,) = driftline.run(SPEC, runs=tmp_path).runs
    assert again.table("answers").equals(before)


def test_other_code_under_the_same_name_is_another_run(tmp_path: Path) -> None:
    own = tmp_path / "own.py"
    own.write_text(OWN)
    spec = {**SPEC, "methods": [f"{own}:Own"]}
    (first,) = driftline.run(spec, runs=tmp_path / "runs").runs
    own.write_text(OWN + "\n# changed\n")
    (second,) = driftline.run(spec, runs=tmp_path / "runs").runs
    assert first.key != second.key


def test_a_run_that_failed_takes_no_other_with_it(tmp_path: Path) -> None:
    own = tmp_path / "own.py"
    own.write_text(OWN.replace("    pass", "    def learn(self, x, y):\n        raise ValueError('broken')"))
    with pytest.raises(UserError, match="broken"):
        driftline.run({**SPEC, "methods": ["erm", f"{own}:Own"]}, runs=tmp_path / "runs")
    assert len(Store.open(tmp_path / "runs").record()) == 1


FADE = """
from dataclasses import dataclass
from driftline.shifts import Shift

@dataclass(frozen=True)
class Fade(Shift):
    amount: float = 10
    amount_range = (1, 100)

    def images(self, images, labels, rng, white):
        return images * (1 - self.amount / 100)
"""


def test_another_shift_under_the_same_name_is_another_run(tmp_path: Path) -> None:
    """Its file stands in the middle of a text."""
    own = tmp_path / "fade.py"
    own.write_text(FADE)
    few = {"sizes": [50, 50, 50], "test": 50, "oracle": 0, "epochs": 1, "lr": 1e-3, "weight_decay": 0, "dropout": 0}
    model = {"name": "conv-1", "width": 4}
    spec = {"benchmark": "seq-to-final", "data": "color-digits", "model": model, "methods": ["baseline"], "seeds": 1}
    spec["seq-to-final"] = {**few, "shifts": f"C+{own}:Fade=20,R"}
    keys = [plan(parse(spec)).run_keys]
    own.write_text(FADE.replace("1 - self", "2 - self"))
    assert plan(parse(spec)).run_keys not in keys


def test_other_code_of_a_method_within_a_method_is_another_run(tmp_path: Path) -> None:
    own = tmp_path / "own.py"
    own.write_text(OWN.replace("erm", "ft").replace("ERM", "FineTune"))
    methods = [{"name": "periodic-reset", "method": f"{own}:Own"}]
    spec = {
        **SPEC,
        "model": "linear",
        "methods": methods,
        "seeds": 1,
        "timeline": {"resamples": 10, "upstream": 1, "upstream_updates": 20},
    }
    (first,) = driftline.run(spec, runs=tmp_path / "runs").runs
    own.write_text(own.read_text() + "\n# changed\n")
    (second,) = driftline.run(spec, runs=tmp_path / "runs").runs
    assert first.key != second.key


TEACHER = """
from dataclasses import dataclass
from driftline.learners.supervised.base import SupervisedLearner

@dataclass
class Teacher(SupervisedLearner):
    def train(self, x, y):
        for _ in range(1):
            super().train(x, y)
"""


@pytest.mark.parametrize("named", [lambda own: own, lambda own: {"name": own}], ids=["text", "settings"])
def test_other_code_of_a_pretraining_makes_another_upstream_model(tmp_path: Path, named: Any) -> None:
    own = tmp_path / "my own.py"  # a space in a name must not hide it
    few = {"resamples": 10, "upstream": 1, "upstream_updates": 5}
    method = {"name": "ncm", "pretraining": named(f"{own}:Teacher")}
    spec = {**SPEC, "model": "linear", "methods": [method], "seeds": 1, "timeline": few}
    own.write_text(TEACHER)
    (first,) = driftline.run(spec, runs=tmp_path / "runs").runs
    own.write_text(TEACHER.replace("range(1)", "range(3)"))
    (second,) = driftline.run(spec, runs=tmp_path / "runs").runs
    assert first.key != second.key
    assert second.card.compute.upstream_macs == 3 * first.card.compute.upstream_macs > 0


def test_a_text_too_long_for_a_name_names_no_file() -> None:
    assert user_files.source_files(300 * "a" + ".py:Own") == []
    assert weights_file(300 * "a") is None
