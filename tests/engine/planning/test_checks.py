"""What does not fit together is refused before any run: settings, and networks that users bring."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import driftline
from driftline.engine.planning.plan import plan
from driftline.errors import UserError
from driftline.spec import parse

SOURCE = """
import torch
from torch import nn

class Five(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.head = nn.BatchNorm2d(1), nn.Linear(64, 5)
    def forward(self, x):
        return self.head(self.norm(x).flatten(1))

class Tabular(nn.Module):
    def __init__(self, outputs):
        super().__init__()
        self.head = nn.Linear(3, outputs)
    def forward(self, x):
        return self.head(x)

class Doubled(nn.Module):
    '''Twice the pixels as features; the linear layer that is named last is not the one that is called last.'''
    n_features = 64
    def __init__(self, outputs):
        super().__init__()
        self.head = nn.Linear(64, outputs)
        self.unused = nn.Linear(3, outputs)
    def features(self, x):
        return 2 * x.flatten(1)
    def forward(self, x):
        return self.head(self.features(x))

class Plain(nn.Module):
    def __init__(self, outputs):
        super().__init__()
        self.head = nn.Linear(64, outputs)
    def forward(self, x):
        return self.head(2 * x.flatten(1))

def loaded(outputs):
    network = Five()
    network.head = nn.Linear(64, outputs)
    network.pretrained = True
    return network
"""


@pytest.fixture
def run(tmp_path: Path) -> Any:
    (tmp_path / "own.py").write_text(SOURCE)

    def run(name: str, methods: Any, benchmark: str = "timeline", **options: Any) -> Any:
        data = {"name": "digits", "periods": 4} if benchmark == "timeline" else "digit-symmetries"
        spec = {
            "benchmark": benchmark,
            "data": data,
            "methods": methods,
            "model": {"name": f"{tmp_path}/own.py:{name}"},
        }
        spec["model"] |= options.pop("model", {})
        return driftline.run({**spec, benchmark: {"resamples": 5, **options}}, runs=tmp_path / "runs").runs

    return run


def test_another_number_of_outputs_is_refused_or_replaced(run: Any) -> None:
    with pytest.raises(UserError, match=r"outputs of shape \(2, 5\) for 2 samples, and this task needs \(2, 10\)"):
        run("Five", "ft")
    (fixed,) = run("Five", [{"name": "ft", "updates": 2}], model={"head": "new"})
    assert fixed.card.weights.initialized == ["head.weight", "head.bias"]
    assert fixed.card.weights.loaded == 5


def test_a_network_for_other_inputs_is_refused(run: Any) -> None:
    with pytest.raises(UserError, match=r"own.py:Tabular' fails on inputs of shape \(8, 8, 1\) .*RuntimeError: mat1"):
        run("Tabular", "ft")


def test_a_network_that_nothing_trains_is_refused_unless_it_says_that_it_is_trained(run: Any) -> None:
    with pytest.raises(UserError, match=r"frozen never sees labels, so it needs a pretrained.* `pretrained = True`"):
        run("Plain", "frozen")
    assert len(run("loaded", "frozen")) == 1


def test_prototype_methods_use_a_networks_own_features(run: Any) -> None:
    """The same features by a method `features` and as inputs of the last layer give the same answers."""
    methods = ["ncm", {"name": "exemplar-tuning", "train_every": 100, "epochs": 1}]
    options = {"class_size_law": "100/(4+r)", "upstream_updates": 5}
    by_method, by_layer = (run(name, methods, "open-world", **options) for name in ("Doubled", "Plain"))
    assert len(by_method) == len(methods)
    for one, other in zip(by_method, by_layer, strict=True):
        distances = [run.table("answers")["distance"].to_numpy() for run in (one, other)]
        known = np.isfinite(distances[0])
        assert known.mean() > 0.9
        np.testing.assert_array_equal(*distances)


def test_a_setting_without_effect_is_refused_in_each_entry_of_a_method() -> None:
    methods = [{"name": "erm", "lr": 0.1}, "erm"]
    spec = {"benchmark": "timeline", "data": "digits", "model": "logistic-regression", "methods": methods}
    with pytest.raises(UserError, match=r"erm\.lr has no effect: logistic-regression is not trained by gradients"):
        plan(parse(spec))
