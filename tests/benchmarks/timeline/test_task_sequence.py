"""timeline with protocol=tasks: the whole matrix of accuracies, and scores that are those of the metrics."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import driftline
from driftline.benchmarks.timeline.benchmark import Options, Timeline
from driftline.data import load
from driftline.engine.executors.base import Event
from driftline.engine.planning.plan import plan
from driftline.engine.run import as_spec, run_plan
from driftline.engine.stages import checkpoint
from driftline.errors import UserError
from driftline.metrics.continual import average_accuracy, backward_transfer, forgetting, forward_transfer
from driftline.record.run import Record, Run
from driftline.report.figures.base import draw
from driftline.seeds import Seed
from driftline.store.store import Store

pytestmark = pytest.mark.xdist_group("task-sequence")  # what all its tests use is made once

DATA = {"name": "task-sequence", "tasks": 3, "samples": 40, "test_samples": 30}
FT = {"name": "ft", "updates": 20, "lr": 0.01}
ER = {"name": "er", "epochs": 2, "lr": 0.01}


def spec(methods: list[Any], data: dict[str, Any] | None = None, **options: Any) -> dict[str, Any]:
    return {
        "benchmark": "timeline",
        "data": {**DATA, **(data or {})},
        "model": {"name": "conv-1", "width": 4},
        "methods": methods,
        "timeline": {"protocol": "tasks", "resamples": 50, **options},
    }


@pytest.fixture(scope="module")
def rotated(tmp_path_factory: pytest.TempPathFactory) -> Record:
    return driftline.run(spec([FT, ER], {"kind": "rotated"}), runs=tmp_path_factory.mktemp("runs"))


def matrix(run: Run, ends: tuple[int, ...] = (0, 1, 2), names: str = "123") -> np.ndarray:
    """Return accuracies from the record by a loop: the untrained model, then that after each task."""
    probes = run.table("probes")
    cells = [
        [probes[(probes["step"] == step) & (probes["probe"] == name)]["correct"].mean() for name in names]
        for step in (-1, *ends)
    ]
    return np.array(cells, float)


def value(run: Run, metric: str, stat: str = "mean") -> float:
    scores = run.table("scores")
    return float(scores[(scores["metric"] == metric) & (scores["stat"] == stat)]["value"].item())


def test_scores_are_those_of_the_metrics_on_the_record(rotated: Record) -> None:
    assert len(rotated.runs) == 2
    for run in rotated.runs:
        (baseline, *rows), scores = matrix(run), run.table("scores")
        A = np.array(rows)
        assert value(run, "average-accuracy") == pytest.approx(average_accuracy(A).mean)
        assert value(run, "forgetting") == pytest.approx(forgetting(A).mean)
        assert value(run, "backward-transfer") == pytest.approx(backward_transfer(A).mean)
        assert value(run, "forward-transfer") == pytest.approx(forward_transfer(A, baseline).mean)
        assert value(run, "id") == pytest.approx(np.diag(A).mean())
        cells = scores[scores["metric"] == "accuracy"].pivot(index="time", columns="tau", values="value")
        assert np.allclose(cells.to_numpy(float), A)
        inside = scores[scores["low"].notna()]
        assert (inside["low"] <= inside["value"] + 1e-12).all()
        assert (inside["value"] <= inside["high"] + 1e-12).all()
        assert (scores[scores["metric"] == "accuracy"]["n"] == 30).all()
        assert np.ptp(A) > 0.1, "the models differ"


def test_models_are_tested_on_the_given_tests_of_earlier_and_later_tasks(rotated: Record) -> None:
    run, data = (
        rotated.runs[0],
        load("task-sequence", {**{k: v for k, v in DATA.items() if k != "name"}, "kind": "rotated"}),
    )
    probes = run.table("probes")
    assert data.test is not None
    for t in (1, 2, 3):
        expected = set(data.samples.id[data.test & (data.samples.time == t)].tolist())
        for step in (-1, 0, 1, 2):
            asked = probes[(probes["step"] == step) & (probes["probe"] == str(t))]["id"]
            assert set(asked.tolist()) == expected
    assert run.card.protocol["protocol"] == "task sequence"
    assert run.card.protocol["off_diagonal"] == "held-out samples of the other task"


def test_the_heat_map_has_the_lower_triangle(rotated: Record) -> None:
    frame = draw("accuracy", rotated)[0]
    cells = frame[frame["method"] == frame["method"].iloc[0]]
    assert len(cells) == 9


def test_forward_transfer_says_nothing_where_each_task_has_its_own_classes(tmp_path: Path) -> None:
    (run,) = driftline.run(spec([FT]), runs=tmp_path).runs
    assert run.card.protocol["class_incremental"]
    assert "forward-transfer" not in set(run.table("scores")["metric"])
    _baseline, *rows = matrix(run)
    assert value(run, "average-accuracy") == pytest.approx(np.mean(rows[-1]))
    assert rows[0][1] == rows[0][2] == 0, "no model knows a later class"


def test_steps_of_some_samples(tmp_path: Path) -> None:
    given = spec([ER], {"kind": "rotated"}, step_size=16, blur=0.5)
    (run,) = driftline.run(given, runs=tmp_path).runs
    answers = run.table("answers")
    assert answers.groupby("step").size().tolist() == [16, 16, 8] * 3
    assert run.card.protocol["task_ends"] == [2, 5, 8]
    assert run.card.protocol["boundaries"] == "blurred (0.5)"
    assert sorted(set(run.table("probes")["step"])) == [-1, 2, 5, 8]
    baseline, *rows = matrix(run, (2, 5, 8))
    assert value(run, "forward-transfer") == pytest.approx(forward_transfer(rows, baseline).mean)


def test_a_run_that_was_stopped_ends_as_if_it_had_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = spec([ER], {"kind": "rotated"}, step_size=16)
    monkeypatch.setattr(checkpoint, "CHECKPOINT_SECONDS", 0.0)
    with pytest.raises(KeyboardInterrupt):
        run_plan(plan(as_spec(given)), Store.create(tmp_path / "a"), on_event=stop_after(4))
    (resumed,), (never,) = (driftline.run(given, runs=tmp_path / name).runs for name in "ab")
    for name in ("answers.parquet", "probes.parquet", "scores.parquet", "card.json"):
        assert (resumed.folder / name).read_bytes() == (never.folder / name).read_bytes()


def stop_after(steps: int) -> Callable[[Event], None]:
    def watch(event: Event) -> None:
        if event.kind == "advanced" and event.done >= steps:
            raise KeyboardInterrupt

    return watch


def test_first_tasks_may_choose_settings_or_be_upstream(tmp_path: Path) -> None:
    data = {"kind": "rotated", "tasks": 4}
    (run,) = driftline.run(spec([FT], data, validation=2), runs=tmp_path).runs
    probes, scores = run.table("probes"), run.table("scores")
    assert set(probes["probe"]) == {"3", "4"}
    baseline, *rows = matrix(run, (2, 3), "34")
    assert value(run, "forward-transfer") == pytest.approx(rows[0][1] - baseline[1])
    assert set(scores[scores["metric"] == "accuracy"]["time"]) == {"3", "4"}
    chosen_by = Options(protocol="tasks", validation=2).validation_options()
    assert chosen_by is not None
    settings = {k: v for k, v in {**DATA, **data}.items() if k != "name"}
    scenario = Timeline().build_scenario(load("task-sequence", settings), chosen_by, Seed(0))
    assert [scenario.stream[k].time for k in range(len(scenario.stream))] == ["1", "2"]
    upstream = Timeline().build_scenario(
        load("task-sequence", settings), Options(protocol="tasks", upstream=1), Seed(0)
    )
    assert (len(upstream.stream), len(upstream.upstream)) == (3, 40)  # type: ignore[arg-type]


def test_options() -> None:
    assert Options(protocol="tasks").holdout == "given"
    assert Options(protocol="tasks", holdout=0.2).holdout == 0.2
    assert (Options().holdout, Options(protocol="fix").holdout) == (0.1, 0.1)
    assert not {"step_size", "blur"} & set(Options().model_dump(mode="json")), "keys of older runs stay"
    with pytest.raises(UserError, match="has no test set"):
        Timeline().build_scenario(load("digits"), Options(protocol="tasks"), Seed(0))
