"""How a method's model is trained before the method takes it: another pretraining is another upstream stage."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

import driftline
from driftline import registry
from driftline.engine.stages import checkpoint
from driftline.engine.stages.checkpoint import Checkpoint
from driftline.errors import UserError
from driftline.learners.base import Learner
from driftline.learners.supervised.base import SupervisedLearner
from driftline.types import Reveal

SPEC: dict[str, Any] = {
    "benchmark": "timeline",
    "data": {"name": "digits", "periods": 4},
    "model": "linear",
    "seeds": 1,
    "timeline": {"upstream": 1, "upstream_updates": 100},
}


@dataclass
class Ones(SupervisedLearner):
    """Makes every weight the same number instead of training."""

    number: float = 1.0

    def train(self, x: Any, y: Any) -> None:
        with torch.no_grad():
            for weight in self.model.parameters():
                weight.fill_(self.number)


@dataclass
class Schooled(Learner):
    """Never changes; says how its model was trained."""

    pretraining: str | dict[str, Any] = "supervised"
    min_reveal = Reveal.INPUTS

    def diagnostics(self) -> dict[str, float]:
        return {"weight": float(next(iter(self.model.parameters())).detach().mean())}


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    registry.names("method")  # all that there is, before something is added
    registry.names("pretraining")
    monkeypatch.setitem(registry._things["pretraining"], "ones", Ones)
    monkeypatch.setitem(registry._things["method"], "schooled", Schooled)


def test_methods_with_the_same_pretraining_share_it(tmp_path: Path) -> None:
    ways = [{"name": "schooled"}, {"name": "schooled", "pretraining": "ones"}]
    twos = {"name": "schooled", "pretraining": {"name": "ones", "number": 2.0}}
    record = driftline.run({**SPEC, "methods": ["frozen", *ways, twos]}, runs=tmp_path)
    assert len(list((tmp_path / "stages").glob("*.safetensors"))) == 3, "supervised, ones, and ones with another number"
    weights = {run.method: run.table("diagnostics")["value"].iloc[0] for run in record.runs if "schooled" in run.method}
    assert sorted(weights.values())[1:] == [1.0, 2.0]
    assert abs(min(weights.values())) < 0.5


@pytest.mark.parametrize(
    ("pretraining", "message"),
    [("wishing", "no pretraining 'wishing'"), ({"name": "ones", "numbr": 2}, "numbr"), ({"way": 3}, "has no name")],
)
def test_what_is_not_there_is_refused_before_any_work(tmp_path: Path, pretraining: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        driftline.run({**SPEC, "methods": [{"name": "schooled", "pretraining": pretraining}]}, runs=tmp_path)


def test_a_state_that_takes_long_to_write_is_written_less_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    monkeypatch.setattr(checkpoint.time, "monotonic", lambda: clock[0])
    written: list[float] = []

    class Slow:
        def flush(self) -> None:
            written.append(clock[0])
            clock[0] += 2.0  # the time that writing takes

        def state(self) -> dict[str, Any]:
            return {}

    kept = Checkpoint(tmp_path / "state", {"recorder": Slow()})
    for second in range(0, 100, 3):
        clock[0] = max(clock[0], float(second))
        kept.save_if_due(1)
    assert written == [6.0, 48.0, 90.0], "after five seconds, then after twenty times two"
