"""Which engine is meant, and what cannot be meant."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from threadpoolctl import threadpool_limits
from typer.testing import CliRunner

import driftline
from driftline.cli.main import app
from driftline.engine.build import DatasetCache
from driftline.engine.executors.config import ExecutorConfig, parse_bytes
from driftline.engine.pool import executors
from driftline.errors import UserError
from driftline.store.store import Store


@pytest.mark.parametrize(
    ("output", "meant"),
    [
        ({}, "serial"),
        ({"jobs": 1}, "serial"),
        ({"jobs": 2}, "local"),
        ({"timeout": 5}, "local"),
        ({"address": "auto"}, "ray"),
        ({"name": "local"}, "local"),
    ],
)
def test_the_engine_that_fits(output: dict[str, Any], meant: str) -> None:
    assert ExecutorConfig(**output).name == meant


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        ({"name": "rai"}, "Did you mean 'ray'"),
        ({"name": "serial", "jobs": 2}, "leave out --jobs 2"),
        ({"name": "serial", "timeout": 5}, "use --engine local"),
        ({"name": "local", "address": "auto"}, "--address is for Ray"),
        ({"jobs": 2, "memory": 10}, "--memory is for Ray"),
        ({"jobs": 0}, "--jobs 0: give a number from 1"),
        ({"timeout": 0}, "--timeout 0: give a number above 0"),
        ({"timeout": float("inf")}, "--timeout inf: give a number above 0, and at most 1e"),
        ({"timeout": float("nan")}, "--timeout nan: give a number above 0"),
        ({"name": "ray", "cpus": -1}, "--cpus -1: give a number above 0"),
        ({"jobs": "two"}, "--jobs 'two': give a whole number"),
        ({"jobs": 1.5}, "--jobs 1.5: give a whole number"),
        ({"timeout": "1h"}, "--timeout '1h': give a number"),
        ({"retries": -1}, "--retries -1: give a number from 0"),
    ],
)
def test_what_makes_no_sense_is_refused(output: dict[str, Any], reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        ExecutorConfig(**output)


def test_sizes() -> None:
    assert (parse_bytes("4GB"), parse_bytes("0.5 mb"), parse_bytes("12")) == (4 * 2**30, 2**19, 12)
    with pytest.raises(UserError, match="lots is not a size: write it as 4GB"):
        parse_bytes("lots")
    with pytest.raises(UserError, match="inf is not a size"):
        parse_bytes("inf")


def test_an_address_at_which_nobody_listens_is_said_at_once(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    with (
        pytest.raises(UserError, match=r"no Ray cluster can be used at localhost:1: .*refused"),
        executors(ExecutorConfig("ray", address="localhost:1"), Store(tmp_path), DatasetCache()),
    ):
        pass


def test_without_ray_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with (
        pytest.raises(UserError, match=r'pip install "driftline\[ray\]"'),
        executors(ExecutorConfig("ray"), Store(tmp_path), DatasetCache()),
    ):
        pass


def test_flags_say_what_is_wrong_before_anything_is_planned() -> None:
    words = ["run", "timeline", "--data", "digits", "--methods", "erm"]
    for flags, reason in {
        ("--engine", "serial", "--jobs", "3"): "leave out --jobs 3",
        ("--gpus", "1"): "is for Ray",
    }.items():
        result = CliRunner().invoke(app, [*words, *flags])
        assert isinstance(result.exception, UserError)
        assert reason in str(result.exception)


MINE = """
import torch
from dataclasses import dataclass
from threadpoolctl import threadpool_info
from driftline.learners.supervised.ft import FineTune

@dataclass
class Mine(FineTune):
    def learn(self, x, y):
        super().learn(x, y)
        assert {library["num_threads"] for library in threadpool_info()} == {torch.get_num_threads()} == {1}
"""


def test_stages_have_one_thread_however_many_there_are(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    method = {"name": f"{tmp_path}/mine.py:Mine", "updates": 1}
    data = {"name": "digits", "periods": 3}
    spec = {"benchmark": "timeline", "data": data, "model": "linear", "methods": [method], "timeline": {"resamples": 5}}
    torch.set_num_threads(2)
    with threadpool_limits(2):
        driftline.run(spec, runs=tmp_path / "runs")
        assert torch.get_num_threads() == 2, "and are given back"
