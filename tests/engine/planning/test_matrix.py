"""A matrix from its recipe to its cells: every cell is the single run it stands for, and none stops the others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from driftline import registry, run
from driftline.cli.commands import run_matrix as cli
from driftline.engine.executors.config import ExecutorConfig
from driftline.engine.planning import matrix
from driftline.engine.stages import StageContext, StreamRun
from driftline.errors import UserError
from driftline.report.analysis.leaderboard import leaderboard
from driftline.report.analysis.matrix import MatrixView, views
from driftline.spec.methods import learner_class
from driftline.spec.settings import Choice, settings_model
from driftline.store.store import Store

pytestmark = pytest.mark.xdist_group("matrix")  # what all its tests use is made once

NARROW = {"name": "conv-1", "width": 2}
FLAT = {"name": "mlp", "width": 16, "depth": 1}
RESET = {"name": "periodic-reset", "method": "ewc", "options": {"fisher_decay": 0.5}}
METHODS = ["frozen", "tent", "ncm", "er", "ewc", RESET]
TINY: dict[str, Any] = {
    "timeline": {
        "data": {"name": "digits", "periods": 4},
        "model": NARROW,
        "timeline": {"upstream": 1, "upstream_updates": 60, "resamples": 20},
        "settings": {
            "ewc": {"updates": 5, "fisher_examples": 10},
            "er": {"epochs": 1},
            "periodic-reset": {"reset_every": 2},
        },
    },
    "seq-to-final": {
        "data": {"name": "color-digits"},
        "model": NARROW,
        "seq-to-final": {"shifts": "R", "sizes": [60, 60], "test": 100, "oracle": 0, "resamples": 20},
        "settings": {"ewc": {"updates": 5}, "er": {"epochs": 1}},
    },
    "refinement": {
        "data": {"name": "digit-clusters", "train": 300, "copies": 1},
        "model": NARROW,
        "refinement": {
            **{"episodes": 4, "queries_per_episode": 32, "period": 2, "upstream_set": 64, "held_out": 20},
            **{"upstream_updates": 60, "resamples": 20},
        },
        "settings": {"er": {"epochs": 1}},
    },
    "test-time": {
        "data": {"name": "color-digits", "test": 300},
        "model": NARROW,
        "test-time": {
            **{
                "order": "gradual",
                "corruptions": "contrast,saturate",
                "images": 160,
                "images_per_point": 10,
                "batch": 32,
            },
            **{"upstream_updates": 60, "resamples": 20},
        },
    },
    "open-world": {
        "data": "digit-symmetries",
        "model": FLAT,
        "open-world": {"class_size_law": "40/(4+r)", "upstream_updates": 60, "resamples": 20, "head": 5},
        "settings": {
            "ewc": {"updates": 1, "fisher_examples": 1},
            "er": {"epochs": 1},
            "periodic-reset": {"reset_every": 20},
        },
    },
}


def content_of(**changes: Any) -> dict[str, Any]:
    return {"matrix": {"methods": METHODS, "seeds": 1, "benchmarks": TINY, **changes}}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Six methods in five benchmarks."""
    made = Store.create(tmp_path_factory.mktemp("matrix") / "runs")
    assert cli.run(content_of(), made, None, ExecutorConfig(), quiet=True) == 0
    return made


@pytest.fixture(scope="module")
def view(store: Store) -> MatrixView:
    (found,) = views(store.record())
    return found


def test_every_method_runs_where_enough_is_revealed(view: MatrixView) -> None:
    filled = {place for place, cell in view.cells.items() if cell.score}
    empty = {place for place, cell in view.cells.items() if cell.score is None}
    label = "periodic-reset(method=ewc, options={'fisher_decay': 0.5})"
    assert len(view.cells) == 30
    assert empty == {
        *(("frozen", "seq-to-final"), ("tent", "seq-to-final"), ("tent", "open-world")),
        *(("ncm", "test-time"), ("er", "test-time"), ("ewc", "test-time"), (label, "test-time")),
        *(("ewc", "refinement"), (label, "refinement"), ("ncm", "seq-to-final")),
    }
    assert ("ncm", "refinement") in filled
    assert ("tent", "timeline") in filled
    assert all(view.cells[place].reason for place in empty)
    assert view.cells["ewc", "refinement"].brief_reason.startswith("needs ")
    assert view.cells["tent", "open-world"].brief_reason == "needs normalization layers"
    assert view.cells["tent", "open-world"].short_reason.startswith(
        "tent adapts batch, layer or group normalization, and this network"
    )
    assert view.cells["ewc", "refinement"].short_reason == (
        "ewc needs all labels, and refinement reveals the labels of its errors"
    )


@pytest.mark.parametrize(
    ("benchmark", "method", "metric", "stat"),
    [
        ("refinement", "ncm", "oec", "final"),
        ("test-time", "tent", "stream-accuracy", "mean"),
        ("open-world", "ncm", "overall", "mean"),
        ("open-world", {"name": "er", "epochs": 1}, "overall", "mean"),
        ("seq-to-final", {"name": "ewc", "updates": 5}, "final-accuracy", "mean"),
    ],
)
def test_a_cell_is_the_single_run(
    benchmark: str, method: Any, metric: str, stat: str, view: MatrixView, tmp_path: Path
) -> None:
    column = {key: value for key, value in TINY[benchmark].items() if key != "settings"}
    alone = run({**column, "benchmark": benchmark, "methods": [method]}, runs=tmp_path)
    scores = alone.scores[(alone.scores["metric"] == metric) & (alone.scores["stat"] == stat)]
    cell = view.cells[method if isinstance(method, str) else method["name"], benchmark]
    assert cell.score is not None
    assert cell.score.value == scores["value"].item()
    assert cell.score.n == scores["n"].item()
    (key,) = [one.key for one in alone.runs]
    assert cell.label == alone.runs[0].method
    assert (view.seeds, cell.score.seeds) == (1, 1)
    assert len(key) == 16


def test_settings_of_a_column_reach_the_method_inside_another(store: Store) -> None:
    runs = [one for one in store.record().runs if one.card.run.benchmark == "open-world"]
    (card,) = [one.card for one in runs if one.card.run.method.name == "periodic-reset"]
    settings = card.run.method.settings
    assert settings["reset_every"] == 20
    assert settings["options"] == {"updates": 1, "batch": 32, "fisher_examples": 1, "fisher_decay": 0.5}
    own = matrix.with_column_settings(
        Choice(name="ewc", settings={"updates": 7}), {"ewc": {"updates": 1, "fisher_decay": 0.1}}, quick={}
    )
    assert own.settings == {"updates": 7, "fisher_decay": 0.1}, "a method's own settings win"


def test_again_it_computes_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any) -> None:
        raise AssertionError("computed again")

    monkeypatch.setattr(StreamRun, "compute", never)
    assert cli.run(content_of(), store, None, ExecutorConfig(), quiet=True) == 0


def test_a_failing_cell_stops_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = StreamRun.compute

    def breaks_for_tent(stage: StreamRun, context: StageContext) -> None:
        if stage.job.label == "tent":
            raise ValueError("on purpose")
        usual(stage, context)

    monkeypatch.setattr(StreamRun, "compute", breaks_for_tent)
    store = Store.create(tmp_path / "runs")
    columns = {name: TINY[name] for name in ("refinement", "test-time")}
    assert (
        cli.run(content_of(methods=["tent", "frozen"], benchmarks=columns), store, None, ExecutorConfig(), quiet=True)
        == 1
    )
    (found,) = views(store.record())
    assert {cell.reason for place, cell in found.cells.items() if place[0] == "tent"} == {"ValueError: on purpose"}
    assert all(found.cells["frozen", name].score for name in columns)


def test_a_method_that_breaks_while_it_is_planned_has_a_reason_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        raise ZeroDivisionError("no such luck")

    monkeypatch.setattr(matrix, "plan", broken)
    outlined = matrix.plan_matrix(matrix.read(content_of(methods="frozen", benchmarks=["test-time"])), None)
    assert [cell.reason for cell in outlined.cells] == ["ZeroDivisionError: no such luck"]
    assert outlined.plans["test-time"].stages == ()


def test_every_benchmark_has_a_column_and_what_it_says_exists() -> None:
    made = matrix.read({"matrix": {"methods": "frozen"}})
    assert list(made.benchmarks) == registry.names("benchmark")
    assert made.seeds == (0, 1, 2)
    used = {}
    for method in registry.names("method"):
        settings = learner_class(method).quick
        for setting in settings:
            assert setting in settings_model("method", method).model_fields
        used |= dict.fromkeys(settings.values(), method)
    assert all(set(registry.get("benchmark", name).quick) <= set(used) for name in made.benchmarks)


def test_a_miniature_makes_methods_quick_and_those_inside_others() -> None:
    made = matrix.read({"matrix": {"methods": ["ewc", "rdumb", "periodic-reset", "ncm"], "benchmarks": ["timeline"]}})
    found = {row.method.name: made.spec("timeline", row).methods[0].settings for row in made.rows}
    assert found["ewc"] == {"updates": 100}
    assert found["rdumb"] == {"lr": 1e-3, "reset_every": 2}
    assert found["periodic-reset"] == {"reset_every": 2, "options": {"lr": 1e-3}}
    assert found["ncm"] == {}


def test_a_column_of_single_samples_leaves_the_training_budget_to_the_benchmark() -> None:
    """With a number of updates of its own, a method would train on 32 copies of each sample."""
    made = matrix.read({"matrix": {"methods": ["ft"], "benchmarks": ["open-world"], "budget_macs": 1e9}})
    spec = made.spec("open-world", made.rows[0])
    settings = spec.jobs("mlp")[0].method.settings
    assert (settings["epochs"], settings["batch"], spec.budget_macs) == (4, 32, 10**9)


def test_a_column_is_merged_with_its_defaults_unless_it_names_its_data() -> None:
    merged = matrix.column_with_defaults("timeline", {"timeline": {"resamples": 7}})
    assert merged["timeline"] == {"upstream": 1, "resamples": 7}
    assert merged["data"] == {"name": "digits", "periods": 6, "rotation": 45.0}
    assert matrix.column_with_defaults("timeline", {"data": "digits"}) == {"data": "digits"}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"methods": ["tnet"]}, "no method 'tnet'. Did you mean 'tent'"),
        ({"methods": [{"name": "tent", "rl": 1}]}, "no setting 'rl'. Did you mean 'lr'"),
        ({"methods": ["tent", "tent"]}, "methods named twice: tent, tent"),
        ({"benchmarks": ["timelin"]}, "no benchmark 'timelin'. Did you mean 'timeline'"),
        ({"benchmarks": {"timeline": {"timelines": {}}}}, "no setting 'timelines'. Did you mean 'timeline'"),
        ({"benchmarks": {"timeline": {"timeline": {"upstrem": 1}}}}, "no setting 'upstrem'. Did you mean 'upstream'"),
        ({"benchmarks": {"timeline": {"settings": {"tnet": {}}}}}, "no method 'tnet'"),
        ({"sedes": 3}, "no setting 'sedes'. Did you mean 'seeds'"),
        ({"methods": []}, "the matrix: 'methods' is empty"),
        ({"benchmarks": [{"timeline": 3}]}, "benchmarks: expected a mapping or names, got"),
        ({"benchmarks": {"timeline": 3}}, "the column timeline: expected a mapping, got 3"),
        ({"benchmarks": {"timeline": {"timeline": 3}}}, "timeline in the column timeline: expected a mapping, got 3"),
        ({"benchmarks": {"timeline": {1: 3}}}, "no setting '1'"),
        ({"benchmarks": {"timeline": {"settings": 3}}}, "settings in the column timeline: expected a mapping, got 3"),
        ({"benchmarks": {"timeline": {"settings": {"er": 3}}}}, "the settings of er in the column timeline: expected"),
    ],
)
def test_what_does_not_exist_is_refused(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        matrix.read(content_of(**changes))


@pytest.mark.parametrize("content", ["rows", ["rows"], 3])
def test_a_recipe_that_is_no_mapping_is_refused(tmp_path: Path, content: object) -> None:
    (tmp_path / "m.yaml").write_text(json.dumps({"matrix": content}))
    with pytest.raises(UserError, match="matrix: expected a mapping, got"):
        cli.content(str(tmp_path / "m.yaml"), [], "erm", None, ["timeline.horizon=3"])


def test_flags_win_over_the_recipe(tmp_path: Path) -> None:
    recipe = tmp_path / "m.yaml"
    recipe.write_text(json.dumps(content_of(seeds=5)))
    assert cli.is_matrix("matrix")
    assert cli.is_matrix(str(recipe))
    assert not cli.is_matrix("timeline")
    flags = ["--benchmarks", "timeline,test-time"]
    found = cli.content(str(recipe), flags, "ewc,tent", 2, ["ewc.fisher_decay=0.5", "timeline.resamples=9"])["matrix"]
    assert found["seeds"] == 2
    assert list(found["benchmarks"]) == ["timeline", "test-time"]
    assert found["methods"] == [{"name": "ewc", "fisher_decay": 0.5}, {"name": "tent"}]
    assert found["benchmarks"]["timeline"]["timeline"] == {"upstream": 1, "upstream_updates": 60, "resamples": 9}
    assert found["benchmarks"]["test-time"] == TINY["test-time"]


@pytest.mark.parametrize(
    ("flags", "methods", "assignments", "sentence"),
    [
        (["--benchmark", "x"], "tent", [], "no flag '--benchmark'. Did you mean '--benchmarks'"),
        (["--benchmarks"], "tent", [], "takes names separated by commas"),
        ([], None, [], "needs --methods"),
        ([], "tent", ["data.name=digits"], "a matrix has data in each of its columns"),
        ([], "tent", ["tnet.lr=1"], "no part 'tnet'"),
    ],
)
def test_flags_that_cannot_be_used(
    flags: list[str], methods: str | None, assignments: list[str], sentence: str
) -> None:
    with pytest.raises(UserError, match=sentence):
        cli.content("matrix", flags, methods, None, assignments)


def test_printed_as_a_recipe_it_is_the_same_matrix(tmp_path: Path) -> None:
    recipe = tmp_path / "m.yaml"
    recipe.write_text(cli.to_yaml(content_of()))
    again = cli.content(str(recipe), [], None, None, [])
    assert matrix.read(again) == matrix.read(content_of())


def test_a_leaderboard_gives_methods_that_cannot_run_the_score_of_the_model_as_it_is(view: MatrixView) -> None:
    made = leaderboard(view)
    places = {setting: k for k, setting in enumerate(made.settings)}
    index = {method: k for k, method in enumerate(made.methods)}
    scores = {key: cell.score.value for key, cell in view.cells.items() if cell.score}
    er, frozen, ncm, tent = (index[name] for name in ("er", "frozen", "ncm", "tent"))
    for place, k in places.items():
        assert made.means[k, er] == pytest.approx(scores.get(("er", place), scores.get(("frozen", place))), abs=1e-9)
    assert made.stands_in[places["test-time"], er]
    assert made.means[places["test-time"], er] == made.means[places["test-time"], frozen]
    assert made.compute[places["test-time"], er] == 0
    sequence = places["seq-to-final"]
    assert made.stands_in[sequence, [frozen, ncm, tent]].all()
    assert 0.05 < made.means[sequence, frozen] < 0.25, "a constant answer to ten classes"
    assert not made.stands_in[sequence, er]


def test_a_benchmark_can_have_several_columns() -> None:
    other = {"benchmark": "timeline", "data": {"name": "digits", "periods": 3}, "model": NARROW, "budget_macs": 5}
    fast = {"benchmark": "refinement", "refinement": {"beta": 0.1}}
    made = matrix.read({"matrix": {"methods": ["er"], "benchmarks": {"timeline": None, "noise": other, "fast": fast}}})
    specs = {name: made.spec(name, made.rows[0]) for name in made.benchmarks}
    assert {name: spec.benchmark for name, spec in specs.items()} == {
        **{"timeline": "timeline", "noise": "timeline", "fast": "refinement"}
    }
    assert (specs["noise"].data.settings["periods"], specs["noise"].budget_macs) == (3, 5)
    assert specs["timeline"].budget_macs is None
    assert (specs["fast"].options["beta"], specs["fast"].options["episodes"]) == (0.1, 20)
    with pytest.raises(UserError, match="no benchmark 'slow'"):
        matrix.read({"matrix": {"methods": ["er"], "benchmarks": {"slow": {}}}})
