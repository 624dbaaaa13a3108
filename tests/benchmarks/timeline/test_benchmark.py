"""The timeline against a direct computation with scikit-learn, and its promise never to examine on what was shown."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import driftline
from driftline.benchmarks.timeline.benchmark import Options, Timeline
from driftline.data import load
from driftline.engine.planning.plan import plan
from driftline.engine.run import as_spec
from driftline.errors import UserError
from driftline.metrics.confidence import accuracy_matrix, standard_errors, wilson
from driftline.metrics.horizons import drift_horizon, stability_horizon
from driftline.metrics.temporal import adaptation_score, period_answers
from driftline.seeds import Seed

pytestmark = pytest.mark.xdist_group("timeline")  # what all its tests use is made once

SPEC = {
    "benchmark": "timeline",
    "data": {"name": "digits", "periods": 6},
    "model": "logistic-regression",
    "methods": ["erm", "erm-all"],
    "timeline": {"resamples": 40},
}


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> driftline.record.run.Record:
    return driftline.run(SPEC, runs=tmp_path_factory.mktemp("runs"))


@cache
def direct_matrix(all_history: bool) -> np.ndarray:
    """A(t, tau) by the definition: fit on 90 % of t (or of all up to t), test on the rest of t and on all of tau."""
    dataset = load("digits", {"periods": 6})
    layout = Timeline().build_scenario(dataset, Options(), Seed(0))
    stream, timeline = layout.stream, layout.probes.timeline
    flat = lambda samples: samples.x.reshape(len(samples), -1) / np.float32(255)  # noqa: E731
    A = np.full((6, 6), np.nan)
    for t in range(6):
        shown = [stream[k].samples for k in range(0 if all_history else t, t + 1)]
        seed = Seed(0).child("init").value % 2**32
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000, random_state=seed))
        model.fit(np.concatenate([flat(part) for part in shown]), np.concatenate([part.y for part in shown]))
        for tau in range(t, 6):
            test = timeline.held_out[t] if tau == t else timeline.all_samples(tau)
            A[t, tau] = (model.predict(flat(test)) == test.y).mean()
    return A


def test_matrix_equals_a_direct_computation(record: driftline.record.run.Record) -> None:
    assert record.runs
    for run in record.runs:
        A, n = accuracy_matrix(period_answers(run.table("probes"), run.card.protocol["periods"]))
        np.testing.assert_allclose(A, direct_matrix(all_history=run.method == "erm-all"), atol=1e-12)
        assert n[0, 0] == 30, "floor(0.9 * 300) = 270 are shown, 30 held out"
        assert n[0, 1] == 300, "a later period is examined whole"


def test_scores_are_the_metrics_of_that_matrix(record: driftline.record.run.Record) -> None:
    assert record.runs
    for run in record.runs:
        A = direct_matrix(all_history=run.method == "erm-all")
        scores = run.table("scores")
        mean = scores[scores["stat"] == "mean"].set_index("metric")["value"]
        assert mean["id"] == pytest.approx(np.diag(A).mean())
        assert mean["ood"] == pytest.approx(np.mean([A[t, t + 1 :].mean() for t in range(5)]))
        assert mean["tas"] == pytest.approx(adaptation_score(A).mean)
        assert mean["sh-paper"] == pytest.approx(stability_horizon(A, 0.9).mean)
        assert mean["dh-paper"] == pytest.approx(drift_horizon(A, 0.0, 0.15, 3).mean)
        error = standard_errors(period_answers(run.table("probes"), run.card.protocol["periods"]))
        assert mean["sh"] == pytest.approx(stability_horizon(A, 0.9, error=error, allowance=1.96).mean)
        assert mean["dh"] == pytest.approx(drift_horizon(A, 0.0, 0.15, 3, error=error, allowance=1.96).mean)
        worst = scores.query("metric == 'ood' and stat == 'minimum'")["value"].item()
        assert worst == pytest.approx(min(A[t, t + 1 :].mean() for t in range(5)))
        cells = scores.query("metric == 'accuracy'")
        assert len(cells) == 21
        assert ((cells["low"] <= cells["value"]) & (cells["value"] <= cells["high"])).all()
        assert (scores["n"] > 0).all(), "no number without its n"
        last = scores.query("metric == 'sh' and stat == 'each'").iloc[-1]
        assert last["time"] == "4", "the last period has no future, hence no horizon"


def test_intervals_of_single_shares_are_wilsons_and_horizons_say_their_false_alarms(
    record: driftline.record.run.Record,
) -> None:
    scores = record.runs[0].table("scores").set_index(["metric", "stat"])
    for cells in (scores.loc[("accuracy", "each")], scores.loc[("id", "each")]):
        low, high = wilson((cells["value"] * cells["n"]).round(), cells["n"])
        np.testing.assert_allclose(cells["low"], low)
        np.testing.assert_allclose(cells["high"], high)
    alarms = scores.xs("false-alarm", level="stat")["value"]
    assert set(alarms.index) == {"sh", "sh-paper", "sh-skip", "dh", "dh-paper", "dh-drop"}
    assert alarms["dh"] < 0.1 < alarms["dh-paper"]
    for metric in alarms.index:
        for stat in ("each", "mean", "minimum"):
            rows = scores.loc[[(metric, stat)]]
            assert ((rows["low"] <= rows["value"]) & (rows["value"] <= rows["high"])).all()


def test_an_allowance_of_none_is_the_papers_definition(tmp_path: Path) -> None:
    spec = {**SPEC, "methods": ["erm"], "timeline": {"resamples": 10, "allowance": 0}}
    (run,) = driftline.run(spec, runs=tmp_path).runs
    scores = run.table("scores").query("stat in ('mean', 'false-alarm')").set_index(["metric", "stat"])["value"]
    for name in ("sh", "dh"):
        for stat in ("mean", "false-alarm"):
            assert scores[name, stat] == scores[f"{name}-paper", stat]


def test_no_model_is_evaluated_on_what_it_was_shown(record: driftline.record.run.Record) -> None:
    dataset = load("digits", {"periods": 6})
    layout = Timeline().build_scenario(dataset, Options(), Seed(0))
    assert record.runs
    for run in record.runs:
        probes = run.table("probes")
        shown: set[int] = set()
        for t in range(6):
            shown |= set(layout.stream[t].samples.id)
            assert not shown & set(probes.loc[probes["step"] == t, "id"])


def test_every_method_meets_the_same_stream(record: driftline.record.run.Record) -> None:
    first, second = (run.table("answers")[["step", "id", "truth"]] for run in record.runs)
    assert first.equals(second)


def test_horizon_limits_the_probes_and_drops_late_rows(tmp_path: Path) -> None:
    spec = {**SPEC, "methods": ["erm"], "timeline": {"resamples": 10, "horizon": 2}}
    (run,) = driftline.run(spec, runs=tmp_path).runs
    A, _ = accuracy_matrix(period_answers(run.table("probes"), run.card.protocol["periods"]))
    full = direct_matrix(all_history=False)
    near = np.triu(np.ones((6, 6)), 0) - np.triu(np.ones((6, 6)), 3)
    np.testing.assert_allclose(A, np.where(near == 1, full, np.nan))
    scores = run.table("scores")
    assert scores.query("metric == 'tas' and stat == 'each'")["time"].tolist() == ["0", "1", "2", "3"]
    assert scores.query("metric == 'tas' and stat == 'mean'")["n"].item() == 4
    ood = np.mean([full[t, t + 1 : t + 3].mean() for t in range(4)])
    assert scores.query("metric == 'ood' and stat == 'mean'")["value"].item() == pytest.approx(ood)


def test_labels_never_seen_in_training_count_as_errors(tmp_path: Path) -> None:
    rows = ["when,size,kind"]
    for period in range(4):
        kinds = ["a", "b"] if period < 2 else ["a", "b", "c"]
        rows += [f"{2000 + period},{'abc'.index(kind) + i / 100},{kind}" for kind in kinds for i in range(20)]
    (tmp_path / "t.csv").write_text("\n".join(rows))
    data = {"name": "table", "path": str(tmp_path / "t.csv"), "time": "when", "target": "kind"}
    (run,) = driftline.run({**SPEC, "data": data, "methods": ["erm"]}, runs=tmp_path / "runs").runs
    A, _ = accuracy_matrix(period_answers(run.table("probes"), run.card.protocol["periods"]))
    assert A[0, 1] == 1.0
    assert A[0, 2] == pytest.approx(2 / 3), "class c was unknown in 2000"
    assert A[2, 3] == 1.0


def test_a_period_with_one_class_is_learnt_as_such(tmp_path: Path) -> None:
    rows = ["when,size,kind"] + [
        f"{2000 + p},{i / 10},{'a' if p == 0 or i < 10 else 'b'}" for p in range(3) for i in range(20)
    ]
    (tmp_path / "t.csv").write_text("\n".join(rows))
    data = {"name": "table", "path": str(tmp_path / "t.csv"), "time": "when", "target": "kind"}
    for model in ("logistic-regression", "hist-gradient-boosting", "linear"):
        method = {"name": "erm", "lr": 0.05} if model == "linear" else "erm"
        (run,) = driftline.run({**SPEC, "data": data, "model": model, "methods": [method]}, runs=tmp_path / "r").runs
        A, _ = accuracy_matrix(period_answers(run.table("probes"), run.card.protocol["periods"]))
        assert A[0, 0] == 1.0
        assert A[0, 1] == 0.5


def test_what_leaves_no_future_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="have the time 0: give each its own"):
        driftline.run({**SPEC, "data": {"name": "digits", "periods": 1}}, runs=tmp_path)
    with pytest.raises(UserError, match="leave fewer than two to deploy in"):
        driftline.run({**SPEC, "timeline": {"upstream": 5}}, runs=tmp_path)


def test_frozen_needs_a_trained_model_and_then_stays_it(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"--set timeline\.upstream=1"):
        driftline.run({**SPEC, "methods": ["frozen"]}, runs=tmp_path)
    (run,) = driftline.run(
        {**SPEC, "methods": ["frozen"], "timeline": {"upstream": 2, "resamples": 10}}, runs=tmp_path
    ).runs
    probes = run.table("probes")
    last = probes[probes["probe"] == "5"].groupby(["id", "probe"])["confidence"].nunique()
    assert (last == 1).all(), "the same answer whenever it is asked"
    assert run.card.protocol["upstream_periods"] == ["0", "1"]


@pytest.mark.parametrize("protocol", ["stream", "fix"])
def test_upstream_training_is_as_long_as_was_said(tmp_path: Path, protocol: str) -> None:
    macs = []
    for updates in (2, 6):
        output = {"upstream": 1, "upstream_updates": updates, "protocol": protocol, "split": "4", "resamples": 10}
        spec = {**SPEC, "model": "linear", "methods": ["frozen"], "timeline": output}
        (run,) = driftline.run(spec, runs=tmp_path).runs
        macs.append(run.card.compute.upstream_macs)
    assert macs[1] == 3 * macs[0] > 0


def test_real_portraits_by_decade(real_data: list[Path], tmp_path: Path) -> None:
    if not any((folder / "yearbook_32x32.npz").exists() for folder in real_data):
        pytest.skip("yearbook_32x32.npz is not among the real data")
    spec = {
        "benchmark": "timeline",
        "data": "yearbook",
        "model": "linear",
        "methods": [{"name": "ft", "updates": 50}],
        "timeline": {"period": "decade", "resamples": 10},
    }
    (run,) = driftline.run(spec, runs=tmp_path).runs
    assert run.card.protocol["periods"] == [f"{d}s" for d in range(1930, 2020, 10)]
    A, n = accuracy_matrix(period_answers(run.table("probes"), run.card.protocol["periods"]))
    assert n.diagonal().sum() + sum(run.card.protocol["samples_per_period"]) == 27149
    assert A[0, 1] > 0.75, "one decade ahead, hair still tells"
    assert A[0, 5:8].mean() < A[0, 1] - 0.05, "and later less so"
    default = plan(as_spec({**spec, "model": None}))
    assert default.stages[0].job.model.model_dump() == {"name": "yearbook-cnn", "settings": {"width": 32}}


def test_numbers_are_scored_by_r2(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frames = []
    for year, slope in ((2001, 3.0), (2002, 3.0), (2003, -3.0)):
        x = rng.normal(size=100)
        frames.append(np.column_stack([np.full(100, year), x, 50 + slope * x + rng.normal(size=100)]))
    np.savetxt(tmp_path / "t.csv", np.concatenate(frames), delimiter=",", header="when,x,y", comments="")
    data = {"name": "table", "path": str(tmp_path / "t.csv"), "time": "when", "target": "y"}
    (run,) = driftline.run({**SPEC, "data": data, "methods": ["erm"]}, runs=tmp_path / "runs").runs
    probes = run.table("probes").query("step == 0 and probe == '2002.0' or step == 0 and probe == '2002'")
    r2 = 1 - ((probes["truth"] - probes["prediction"]) ** 2).mean() / probes["truth"].var(ddof=0)
    cells = run.table("scores").query("metric == 'accuracy'").set_index(["time", "tau"])["value"]
    first, second, third = run.card.protocol["periods"]
    assert cells[first, second] == pytest.approx(r2)
    assert r2 > 0.8
    assert cells[first, third] == 0.0, "worse than the mean is no skill"


def test_the_test_set_of_the_data_is_held_out_when_asked_for() -> None:
    dataset = load("digits", {"periods": 6})
    test = np.arange(len(dataset.samples)) % 5 == 0
    scenario = Timeline().build_scenario(replace(dataset, test=test), Options(holdout="given"), Seed(0))
    held_out = np.concatenate([part.id for part in scenario.probes.timeline.held_out])
    assert held_out.tolist() == dataset.samples.id[test].tolist()
    assert scenario.protocol["diagonal"] == "held-out part of the period"
    with pytest.raises(UserError, match=r"dataset 'digits' has no test set; .* --set data.published_split=true"):
        Timeline().build_scenario(dataset, Options(holdout="given"), Seed(0))


def test_a_shuffled_order_is_a_control_with_the_same_models() -> None:
    """Models of single periods are the same in any order; only the pairs (t, tau) are others."""
    shuffled = Timeline().build_scenario(load("digits", {"periods": 6}), Options(order="shuffled"), Seed(0))
    in_time = Timeline().build_scenario(load("digits", {"periods": 6}), Options(), Seed(0))
    names = shuffled.protocol["periods"]
    assert names != in_time.protocol["periods"]
    assert sorted(names) == sorted(in_time.protocol["periods"])
    assert shuffled.protocol["order"] == "shuffled"
    assert "order" not in in_time.protocol
    for t, name in enumerate(names):
        place = in_time.protocol["periods"].index(name)
        assert np.array_equal(shuffled.stream[t].samples.id, in_time.stream[place].samples.id)
        ahead = [probe.name for probe in shuffled.probes.due(shuffled.stream[t])]
        assert ahead == names[t:]
    other = Timeline().build_scenario(load("digits", {"periods": 6}), Options(order="shuffled"), Seed(1))
    assert other.protocol["periods"] != names


def test_what_cannot_be_shuffled_is_refused() -> None:
    with pytest.raises(UserError, match="order=shuffled: Eval-Fix trains up to a date"):
        Options(order="shuffled", protocol="fix")
    digits = load("digits", {"periods": 6})
    known = replace(digits, samples=replace(digits.samples, known=digits.samples.time))
    with pytest.raises(UserError, match="order=shuffled: labels become known at times of their own"):
        Timeline().build_scenario(known, Options(order="shuffled"), Seed(0))
    assert "order" not in Options().model_dump()  # keys of earlier runs stay
