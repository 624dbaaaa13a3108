"""Numbers change only together with a revision, so that stored results survive an upgrade."""

from __future__ import annotations

import json

import pytest

from driftline._registry_index import INDEX
from driftline.revisions import RAISED

from .frozen_scores import PATH, SPECS, differences, measure, problems

FROZEN = json.loads(PATH.read_text(encoding="utf-8"))


@pytest.mark.parametrize("benchmark", SPECS)
def test_scores_are_as_frozen(benchmark: str) -> None:
    frozen = {name: run for name, run in FROZEN.items() if name.startswith(f"{benchmark} ")}
    assert "\n".join(problems(frozen, measure(benchmark))) == ""


def test_every_benchmark_and_family_is_frozen() -> None:
    assert set(SPECS) == set(INDEX["benchmark"])
    frozen = {part for run in FROZEN.values() for part in run["revisions"]}
    families = {entry[0].removeprefix("driftline.").rpartition(".")[0] for entry in INDEX["method"].values()}
    assert families <= frozen


def test_a_change_names_the_parts_that_no_unchanged_run_has() -> None:
    parts = {"a": {"training": 1, "learners.a": 1}, "b": {"training": 1, "learners.b": 1}}
    before = {name: {"revisions": parts[name], "scores": {"accuracy": 0.5}} for name in "ab"}
    after = {**before, "a": {"revisions": parts["a"], "scores": {"accuracy": 0.6}}}
    *_, line, advice = problems(before, after)
    assert line == "a: accuracy 0.5 → 0.6"
    assert advice.endswith("of: learners.a")
    everything = {name: {**run, "scores": {"accuracy": 0.6}} for name, run in before.items()}
    assert problems(before, everything)[-1].endswith("of: training")


def test_a_raised_revision_asks_to_freeze_again() -> None:
    before = {"a": {"revisions": {"training": 1}, "scores": {"accuracy": 0.5}}}
    after = {"a": {"revisions": {"training": 2}, "scores": {"accuracy": 0.6}}}
    assert problems(before, after) == [
        "a: its revisions changed. Freeze it again: python tests/frozen_scores.py",
    ]


def test_scores_within_the_tolerance_are_the_same() -> None:
    assert differences({"x": 0.5, "y": None}, {"x": 0.50009, "y": None}) == []
    assert differences({"x": 0.5, "y": None}, {"x": 0.5002, "y": 0.1}) == ["x 0.5 → 0.5002", "y None → 0.1"]


def test_raised_parts_exist() -> None:
    known = {part for run in FROZEN.values() for part in run["revisions"]}
    modules = {entry[0].removeprefix("driftline.") for kind in INDEX.values() for entry in kind.values()}
    assert set(RAISED) <= known | modules
