"""The command that measures few-shot accuracy, as a user types it."""

from __future__ import annotations

import re
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from driftline.cli.commands.few_shot import few_shot
from driftline.errors import UserError

FIXED = ["--data", "digits", "--model", "mlp", "--set", "model.width=16", "--set", "data.rotation=0"]


def run(*arguments: str) -> Any:
    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(few_shot)
    return CliRunner().invoke(app, [*FIXED, "-n", "20", *arguments])


def accuracies(output: str) -> list[float]:
    return [float(found) for found in re.findall(r"([\d.]+) ±", output)]


def test_numbers_that_say_what_they_are() -> None:
    given = ["--set", "pretraining.updates=20", "--steps", "40", "--lr", "0.5"]
    ran = run(*given)
    assert ran.exit_code == 0, ran.output
    assert "5-way 5-shot on 5 novel classes, 20 episodes, 95 % interval" in ran.output
    found = accuracies(ran.output)
    assert len(found) == 3
    assert all(30 < value < 95 for value in found)
    assert "after  40 gradient steps" in ran.output
    assert accuracies(run(*given).output) == found


def test_fewer_shots_are_harder() -> None:
    one, many = (accuracies(run("--pretraining", "supervised", "--shot", shot).output)[0] for shot in ("1", "20"))
    assert one + 5 < many


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--novel", "9"], "novel=9: digits has 10 classes"),
        (["--way", "6", "--set", "pretraining.updates=0"], "6-way episodes need 6 classes"),
        (["--pretraining", "protos"], "protos"),
        (["--model", "logistic-regression"], "logistic-regression"),
    ],
)
def test_what_cannot_be_is_refused_in_words(arguments: list[str], sentence: str) -> None:
    ran = run(*arguments)
    assert isinstance(ran.exception, UserError)
    assert sentence in str(ran.exception)
