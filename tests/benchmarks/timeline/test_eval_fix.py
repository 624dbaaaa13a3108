"""Eval-Fix against a direct computation: train up to the split, test after it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import driftline
from driftline.benchmarks.timeline import eval_fix
from driftline.benchmarks.timeline.benchmark import Options, Timeline
from driftline.data import load
from driftline.errors import UserError
from driftline.models import build
from driftline.seeds import Seed

SPEC = {
    "benchmark": "timeline",
    "data": {"name": "digits", "periods": 6},
    "model": "logistic-regression",
    "methods": ["erm-all"],
    "timeline": {"resamples": 40, "protocol": "fix", "split": "2"},
}


def scores(spec: dict[str, object], folder: Path) -> dict[str, float]:
    frame = driftline.run(spec, runs=folder).scores
    return frame[frame["stat"] == "mean"].set_index("metric")["value"].to_dict()


def test_numbers_equal_a_direct_computation(tmp_path: Path) -> None:
    timeline = Timeline().build_scenario(load("digits", {"periods": 6}), Options(), Seed(0)).probes.timeline
    model = build("logistic-regression", (8, 8, 1), 10, Seed(0).child("init"))
    model.fit(
        np.concatenate([p.x for p in timeline.revealed[:3]]), np.concatenate([p.y for p in timeline.revealed[:3]])
    )

    def right(samples: driftline.types.Samples) -> np.ndarray:
        return model.predict(samples.x).argmax(axis=1) == samples.y

    later = [right(timeline.all_samples(tau)).mean() for tau in range(3, 6)]
    found = scores(SPEC, tmp_path)
    assert found["fix-id"] == pytest.approx(np.concatenate([right(part) for part in timeline.held_out[:3]]).mean())
    assert found["fix-ood"] == pytest.approx(np.mean(later))
    assert found["fix-worst"] == pytest.approx(min(later))


def test_pooled_methods_train_once_and_continual_ones_in_each_period(tmp_path: Path) -> None:
    methods = [{"name": "erm-all", "updates": 30}, {"name": "ft", "updates": 30}]
    record = driftline.run({**SPEC, "model": "linear", "methods": methods}, runs=tmp_path)
    backward = {run.method: run.card.compute.backward_macs for run in record.runs}
    assert backward["ft(updates=30)"] == 3 * backward["erm-all(updates=30)"], "three periods against one fit"
    assert backward["erm-all(updates=30)"] == 30 * 32 * 64 * 10, "one layer: weight gradients only"


def test_split_last_tells_how_hard_each_period_is(tmp_path: Path) -> None:
    record = driftline.run({**SPEC, "timeline": {"protocol": "fix", "resamples": 40}}, runs=tmp_path)
    frame = record.scores
    each = frame[frame["stat"] == "each"]
    assert each["time"].tolist() == ["0", "1", "2", "3", "4", "5"]
    assert (each["n"] == 30).all(), "held-out parts only: every period was trained on"
    assert set(frame["metric"]) == {"fix-id"}


def test_single_shares_have_wilsons_interval() -> None:
    """Ten right answers of ten are no certainty, neither in a period nor pooled over two."""
    probes = pd.DataFrame({"probe": ["1"] * 10 + ["2"] * 10 + ["3"] * 10, "correct": 1.0})
    found = pd.DataFrame(eval_fix.score(probes, ["1", "2", "3"], "2", 50, np.random.default_rng(0)))
    each, pooled = found[found["stat"] == "each"], found.query("metric == 'fix-id' and stat == 'mean'")
    assert each["low"].tolist() == pytest.approx([0.7225] * 3, abs=5e-5)
    assert pooled["low"].item() == pytest.approx(0.8389, abs=5e-5)
    assert found["high"].tolist() == pytest.approx([1.0] * len(found))


def test_an_unknown_split_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no period '22'\. Did you mean '2'"):
        driftline.run({**SPEC, "timeline": {"protocol": "fix", "split": "22"}}, runs=tmp_path)


def test_no_skill_is_zero_and_a_period_without_a_score_is_left_out() -> None:
    correct = {"1": [0.5, 0.7], "2": [0.2, 0.4], "3": [-3.0, -1.0], "4": [np.nan, np.nan], "5": [0.4, 0.8]}
    probes = pd.DataFrame([(name, value) for name, values in correct.items() for value in values])
    probes.columns = pd.Index(["probe", "correct"])
    rows = pd.DataFrame(eval_fix.score(probes, list(correct), "2", 20, np.random.default_rng(0)))
    each = rows[rows["stat"] == "each"].set_index("time")["value"].to_dict()
    assert each == pytest.approx({"1": 0.6, "2": 0.3, "3": 0, "5": 0.6})
    means = rows[rows["stat"] == "mean"].set_index("metric")["value"].to_dict()
    assert means == pytest.approx({"fix-id": 0.45, "fix-ood": 0.3, "fix-worst": 0})
    assert (rows["low"] >= 0).all()
