"""The names that users rely on: they stay where they are, with the arguments that were promised."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import numpy as np
import pytest
import typer.main

from driftline import models, registry
from driftline.cli.main import app
from driftline.metrics import openworld, shift, temporal
from driftline.metrics.collapse import collapsed

FUNCTIONS = [
    ("driftline", "run", "spec"),
    ("driftline", "load", "path"),
    ("driftline", "audit", "frame time target model"),
    ("driftline.metrics.temporal", "transfer_ratio", "A"),
    ("driftline.metrics.temporal", "stability_horizon", "A delta gaps"),
    ("driftline.metrics.temporal", "drift_horizon", "A epsilon threshold horizon direction"),
    ("driftline.metrics.temporal", "adaptation_score", "A horizon"),
    ("driftline.metrics.refinement", "scores", ""),
    ("driftline.metrics.openworld", "overall", ""),
    ("driftline.metrics.openworld", "mean_class", ""),
    ("driftline.metrics.openworld", "cross_sections", ""),
    ("driftline.metrics.openworld", "unseen_auroc", ""),
    ("driftline.metrics.openworld", "time_matched_auroc", ""),
    ("driftline.metrics.openworld", "best_f1", ""),
    ("driftline.metrics.collapse", "collapsed", "accuracy frozen"),
    ("driftline.metrics.shift", "wasserstein2", ""),
    ("driftline.metrics.shift", "covariate_shift", ""),
    ("driftline.metrics.shift", "conditional_shift", ""),
    ("driftline.shifts", "apply", "images labels sequence rng"),
    ("driftline.shifts", "corrupt", "images name severity rng"),
    ("driftline.streams", "periods", ""),
    ("driftline.streams", "sequence", ""),
    ("driftline.streams", "queries", ""),
    ("driftline.streams", "corruption_path", ""),
    ("driftline.streams", "open_world", ""),
    ("driftline.models", "build", "name"),
    ("driftline.testing", "check_learner", ""),
    ("driftline.testing", "check_stream", ""),
    ("driftline.testing", "check_metric", ""),
]
COMMANDS = {
    "run": "--data --model --methods --seeds --set --runs --data-dir",
    "plan": "",
    "audit": "--time --target --model",
    "report": "-o",
    "table": "--format",
    "list": "",
    "show": "",
    "diff": "",
    "quickstart": "",
}
MODELS = [*(f"{kind}-{blocks}" for kind in ("conv", "dense", "res") for blocks in range(1, 5)), "resnet18", "resnet50"]


@pytest.mark.parametrize(("module", "name", "arguments"), FUNCTIONS)
def test_a_public_function_has_its_arguments(module: str, name: str, arguments: str) -> None:
    parameters = inspect.signature(getattr(importlib.import_module(module), name)).parameters
    assert arguments.split() == [each for each in parameters if each in arguments.split()]


@pytest.mark.parametrize(("command", "options"), COMMANDS.items())
def test_a_command_has_its_options(command: str, options: str) -> None:
    group: Any = typer.main.get_command(app)
    assert set(options.split()) <= {option for each in group.commands[command].params for option in each.opts}


def test_models_of_the_papers_are_registered() -> None:
    assert set(MODELS) <= set(registry.names("model"))
    assert models.build("conv-1", shape=(32, 32, 3), outputs=10) is not None


def test_public_metrics_give_the_numbers_of_their_definitions() -> None:
    A = np.array([[0.8, 0.6], [np.nan, 0.75]])
    assert temporal.transfer_ratio(A)[0, 1] == pytest.approx(0.8)
    assert temporal.stability_horizon(A, 0.8, gaps="skip")[0] == 1
    assert temporal.drift_horizon(A, 0.0, 0.15, 1, direction="drop")[0] == 1
    assert temporal.adaptation_score(A, horizon=1)[0] == pytest.approx(0.8)
    assert openworld.overall([1, 1, 0, 1]) == 0.75
    assert openworld.mean_class([1, 1, 0, 1], [0, 0, 0, 1]) == pytest.approx(5 / 6)
    assert openworld.unseen_auroc([1, 2, 3], [0, 0, 1]) == openworld.best_f1([1, 2, 3], [0, 0, 1]).value == 1
    assert openworld.time_matched_auroc([1, 3, 2], [0, 1, 0]) == 1
    found = collapsed([0.7, 0.3, 0.2], [0.5, 0.5, 0.5])
    assert (bool(found), found.since) == (True, 1)
    assert not collapsed([0.7, 0.6, 0.4], [0.5, 0.5, 0.5])
    assert shift.wasserstein2([[0.0, 0.0]], [[3.0, 4.0]]) == pytest.approx(5)
