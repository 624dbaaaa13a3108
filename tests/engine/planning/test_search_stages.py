"""Settings that compete: the best on validation streams is run, its trials are kept, and nothing is done twice."""

import numpy as np
import pytest

import driftline
from driftline.engine.executors.config import ExecutorConfig
from driftline.engine.planning.plan import plan
from driftline.engine.run import run_plan
from driftline.engine.stages import SearchRun
from driftline.record.run import Run, load
from driftline.spec import parse
from driftline.store.store import Store

pytestmark = pytest.mark.xdist_group("search")  # what all its tests use is made once

SPEC = {
    "benchmark": "refinement",
    "data": "digit-clusters",
    "model": {"name": "mlp", "width": 16},
    "methods": ["frozen", {"name": "cft", "epochs": 2}],
    "seeds": 1,
    "selection": {"grid": {"lr": [1e-9, 3e-3]}, "seeds": 2},
    "refinement": {
        "episodes": 4,
        "queries_per_episode": 16,
        "upstream_set": 64,
        "held_out": 20,
        "upstream_updates": 60,
    },
}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folder = tmp_path_factory.mktemp("store")
    driftline.run(SPEC, runs=folder)
    return Store.open(folder)


def cft(store):
    """The run of SPEC that has chosen its learning rate."""
    return store.find(plan(parse(SPEC)).run_keys[1])


def value(scores, seed, metric, stat):
    return scores[(scores.seed == seed) & (scores.metric == metric) & (scores.stat == stat)].value.item()


def test_the_best_setting_on_validation_streams_is_run(store):
    """By hand: the trials as plain runs on validation streams; the winner as a plain run on the test stream."""
    found = {}
    options = {**SPEC["refinement"], "role": "validation", "period": 4}
    for lr in (1e-9, 3e-3):
        plain = {**SPEC, "methods": [{"name": "cft", "epochs": 2, "lr": lr}], "seeds": 2, "refinement": options}
        plain.pop("selection")
        scores = driftline.run(plain, runs=store.folder).scores
        pairs = [(seed, metric, stat) for seed in (0, 1) for metric, stat in (("oec", "final"), ("efr", "mean"))]
        found[lr] = float(np.mean([value(scores, *pair) for pair in pairs]))
    assert found[3e-3] > found[1e-9] + 0.01, "one learning rate is plainly too small"
    protocol = cft(store).card.protocol
    assert [point["lr"] for point in protocol["tried"]] == [1e-9, 3e-3]
    assert [point["score"] for point in protocol["tried"]] == pytest.approx([found[1e-9], found[3e-3]])
    assert protocol["chosen"] == [{"lr": 3e-3, "score": pytest.approx(found[3e-3])}]
    assert (protocol["trials"], protocol["skipped_runs"]) == (4, 0)
    assert protocol["rule"] == "validation-streams"
    assert protocol["selection"].startswith("validation-streams")
    plain = {**SPEC, "methods": [{"name": "cft", "epochs": 2, "lr": 3e-3}]}
    plain.pop("selection")
    direct = driftline.run(plain, runs=store.folder).runs[0]
    for table in ("answers", "probes", "scores"):
        assert direct.table(table).equals(cft(store).table(table)), table


def test_trials_are_kept_but_are_no_results(store):
    planned = plan(parse(SPEC))
    trials = [stage for stage in planned.stages if isinstance(stage, SearchRun)]
    assert len(trials) == 4
    assert all(store.finished(stage.key) for stage in trials)
    assert not {stage.key for stage in trials} & {run.key for run in store.record().runs}
    assert not {stage.key for stage in trials} & {run.key for run in load(store.folder).runs}
    assert len(planned.run_keys) == 2
    frozen = next(run for run in store.record().runs if run.method == "frozen")
    assert frozen.card.protocol["selection"].startswith("none")


def test_the_cost_of_choosing_is_counted(store):
    stages = [stage for stage in plan(parse(SPEC)).stages if isinstance(stage, SearchRun)]
    costs = [Run(store.run_folder(stage.key)).card.compute for stage in stages]
    spent = sum(cost.macs for cost in costs)
    assert cft(store).card.compute.search_macs == spent > 0


def test_nothing_is_done_twice_and_a_larger_grid_adds_only_what_is_new(store):
    again = run_plan(plan(parse(SPEC)), store)
    assert not again.computed
    wider = {**SPEC, "selection": {"grid": {"lr": [1e-9, 1e-3, 3e-3]}, "seeds": 2}}
    summary = run_plan(plan(parse(wider)), store)
    assert sorted(stage.kind for stage in summary.computed) == ["run", "search-round", "search-run", "search-run"]


def test_one_worker_and_two_choose_the_same(store, quick_workers, tmp_path):
    driftline.run(SPEC, runs=tmp_path, jobs=2)
    one, two = cft(store), cft(Store.open(tmp_path))
    assert one.card == two.card
    assert one.table("answers").equals(two.table("answers"))


def test_a_hopeless_setting_is_spared_its_last_trial_by_one_worker_and_by_two(quick_workers, tmp_path):
    spec = {**SPEC, "methods": [{"name": "cft", "epochs": 2}], "selection": {"grid": {"lr": [1e-9, 1e-2]}, "seeds": 5}}
    planned = plan(parse(spec))
    found = []
    for jobs in (1, 2):
        store = Store.create(tmp_path / str(jobs))
        summary = run_plan(planned, store, ExecutorConfig(jobs=jobs))
        assert {stage.job.method.settings["lr"] for stage in summary.skipped} == {1e-9, 1e-2}, "one left has won"
        assert not any(store.finished(stage.key) for stage in summary.skipped)
        found.append(store.find(planned.run_keys[0]).card.protocol)
        assert (found[-1]["trials"], found[-1]["skipped_runs"]) == (10 - len(summary.skipped), len(summary.skipped))
        assert summary.skipped
    assert found[0] == found[1]
    assert found[0]["tried"][0]["out"] == "could no longer win"
    assert found[0]["chosen"][0]["lr"] == 1e-2


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"selection": {"grid": {"batch": [8, 0]}}}, r"batch.*should be greater than or equal to 1"),
        (
            {"refinement": {**SPEC["refinement"], "validation": 0.001}},
            r"validation streams has 1 sample\(s\): raise validation",
        ),
        ({"refinement": {**SPEC["refinement"], "validation": 0.01}}, "an episode may need 16"),
    ],
)
def test_what_no_trial_can_do_is_refused_before_the_first(change, words):
    with pytest.raises(driftline.errors.UserError, match=words):
        plan(parse({**SPEC, **change}))
