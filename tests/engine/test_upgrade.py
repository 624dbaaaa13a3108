"""Results survive an upgrade: what is computed again, scored again and kept, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import driftline
from driftline import registry
from driftline.cli.main import app
from driftline.engine.planning.plan import plan
from driftline.engine.upgrade import Outdated, upgrade
from driftline.record.card import write_card
from driftline.revisions import RAISED
from driftline.spec import parse

SPEC: dict[str, Any] = {
    "benchmark": "timeline",
    "data": {"name": "digits", "periods": 3},
    "model": "naive-bayes",
    "methods": ["erm", "erm-all"],
    "seeds": 1,
    "timeline": {"resamples": 5},
}


def keys(spec: dict[str, Any] = SPEC) -> list[str]:
    return plan(parse(spec)).run_keys


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("upgrade") / "runs"
    driftline.run(SPEC, runs=folder)
    return folder


@pytest.fixture
def raised(monkeypatch: pytest.MonkeyPatch) -> Any:
    return lambda part: monkeypatch.setitem(RAISED, part, 2)


def test_the_version_is_not_in_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    before = keys()
    for module in ("driftline.version", "driftline.engine.stages.card"):
        monkeypatch.setattr(f"{module}.__version__", "99.0")
    assert keys() == before


@pytest.mark.parametrize(
    ("part", "methods"),
    [
        ("training", "erm erm-all"),
        ("benchmarks.timeline", "erm erm-all"),
        ("data.digits", "erm erm-all"),
        ("models.sklearn_models", "erm erm-all"),
        ("learners.supervised.base", "erm erm-all"),
        ("learners.replay", ""),
        ("data.yearbook", ""),
        ("benchmarks.refinement", ""),
        ("metrics.temporal", ""),
        ("benchmarks.timeline.scores", ""),
    ],
)
def test_a_raised_part_changes_the_keys_of_what_it_decides(part: str, methods: str, raised: Any) -> None:
    before = keys()
    raised(part)
    changed = [old != new for old, new in zip(before, keys(), strict=True)]
    assert [m for m, c in zip(SPEC["methods"], changed, strict=True) if c] == methods.split()


def test_a_method_of_ones_own_depends_on_the_classes_it_extends(raised: Any) -> None:
    from driftline.learners.replay.er import ER

    class Mine(ER):
        """A variant of ER."""

    spec = {**SPEC, "benchmark": "refinement", "data": "digit-clusters", "model": "mlp", "methods": [Mine]}
    del spec["timeline"]
    before = keys(spec)
    raised("learners.replay.er")
    assert keys(spec) != before


def test_a_search_depends_on_the_metrics_it_reads(raised: Any) -> None:
    spec = {"benchmark": "refinement", "data": "digit-clusters", "model": "mlp", "methods": ["er"], "seeds": 1}
    spec["selection"] = {"rule": "validation-streams", "grid": {"lr": [0.01, 0.001]}}
    before = plan(parse(spec)).stages
    raised("metrics.refinement")
    after = plan(parse(spec)).stages
    changed = {stage.kind for stage, old in zip(after, before, strict=True) if stage.key != old.key}
    assert changed == {"search-round", "run"}  # the runs of the search are only scored again


def test_the_reasons(finished: Path, raised: Any) -> None:
    assert {run.action for run in upgrade(SPEC, runs=finished)} == {"keep"}
    raised("metrics.temporal")
    assert upgrade(SPEC, runs=finished)[0] == Outdated("erm", 0, "score", "metrics.temporal 1 → 2")
    raised("learners.supervised")
    assert upgrade(SPEC, runs=finished)[0] == Outdated("erm", 0, "run", "learners.supervised 1 → 2")
    other = {**SPEC, "timeline": {"resamples": 6}}
    assert upgrade(other, runs=finished)[0] == Outdated("erm", 0, "run", "not in the store")
    other = {**SPEC, "data": {"name": "digits", "periods": 3, "noise": 0.1}}
    assert upgrade(other, runs=finished)[0].why == "not in the store"


def test_a_setting_that_is_new_is_named(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from driftline.benchmarks.timeline.benchmark import Timeline

    class Options(Timeline.options):  # type: ignore[name-defined,misc]
        stride: int = 1

    monkeypatch.setattr(Timeline, "options", Options)
    assert upgrade(SPEC, runs=finished)[0].why == "options.stride: a setting that one version has and the other has not"


def test_the_command_prints_the_reasons_and_runs_nothing(
    finished: Path, raised: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("driftline.engine.run.run_spec", None)
    command = "run timeline --data digits --model naive-bayes --methods erm,erm-all --seeds 1 --resamples 5 --upgrade"
    words = [*command.split(), "--set", "data.periods=3", "--runs", str(finished)]
    assert CliRunner().invoke(app, words).output == "2 run(s) kept\n"
    raised("training")
    expected = "2 run(s) computed\ncomputed (training 1 → 2):\n  erm, seed 0\n  erm-all, seed 0\n"
    assert CliRunner().invoke(app, words).output == expected


def test_the_runs_of_a_matrix_are_named_with_their_benchmark(finished: Path) -> None:
    columns = {"timeline": {"timeline": {"upstream": 1}}, "refinement": {}}
    runs = upgrade({"matrix": {"methods": ["frozen"], "benchmarks": columns, "seeds": 1}}, runs=finished)
    assert [run.label for run in runs] == ["frozen in timeline", "frozen in refinement"]


def test_scores_are_computed_again_from_the_record(
    tmp_path: Path, raised: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = {**SPEC, "methods": ["erm"]}
    before = driftline.run(spec, runs=tmp_path)
    answers, folder = before.runs[0].table("answers"), before.runs[0].folder
    old = before.scores.set_index(["metric", "stat"])["value"]
    worst = registry.get("metric", "ood-worst")
    monkeypatch.setitem(registry._things["metric"], "ood", worst)
    raised("metrics.temporal")
    monkeypatch.setattr("driftline.engine.stages.active_run.ActiveRun.build", None)  # nothing is run again
    again = driftline.run(spec, runs=tmp_path).runs[0]
    new = again.table("scores").set_index(["metric", "stat"])["value"]
    assert new["ood", "mean"] == old["ood-worst", "mean"] != old["ood", "mean"]
    assert new["id", "mean"] == old["id", "mean"]
    assert again.folder == folder
    assert again.table("answers").equals(answers)
    assert again.card.code.score_revisions["metrics.temporal"] == 2
    assert {run.action for run in upgrade(spec, runs=tmp_path)} == {"keep"}


def test_scores_without_the_trivial_baseline_are_computed_again(tmp_path: Path) -> None:
    spec = {**SPEC, "methods": ["erm"]}
    run = driftline.run(spec, runs=tmp_path).runs[0]
    baseline, card = run.table("trivial_scores"), run.card
    (run.folder / "trivial_scores.parquet").unlink()
    del card.code.score_revisions["benchmarks.trivial_baseline"]
    write_card(run.folder, card)
    assert upgrade(spec, runs=tmp_path) == [Outdated("erm", 0, "score", "benchmarks.trivial_baseline 0 → 1")]
    again = driftline.run(spec, runs=tmp_path).runs[0]
    assert again.table("trivial_scores").equals(baseline)
    assert len(baseline)
    assert set(baseline["stat"]) == set(run.table("scores")["stat"]) - {"each"}


def test_a_raised_method_is_computed_again_and_no_other(tmp_path: Path, raised: Any) -> None:
    spec = {**SPEC, "methods": ["erm", "ft"]}
    before = {run.method: run for run in driftline.run(spec, runs=tmp_path).runs}
    raised("learners.supervised.ft")
    assert upgrade(spec, runs=tmp_path) == [
        Outdated("erm", 0, "keep", ""),
        Outdated("ft", 0, "run", "learners.supervised.ft 1 → 2"),
    ]
    after = {run.method: run for run in driftline.run(spec, runs=tmp_path).runs}
    assert (after["erm"].key, after["erm"].finished_at) == (before["erm"].key, before["erm"].finished_at)
    assert after["ft"].key != before["ft"].key
    assert after["ft"].card.code.revisions["learners.supervised.ft"] == 2
    text = str(driftline.load(tmp_path).table())
    assert "these numbers are out of date (learners.supervised.ft 1 → 2)" in text, "the run of the older revision"
    assert {run.action for run in upgrade(spec, runs=tmp_path)} == {"keep"}
