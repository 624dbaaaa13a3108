"""Runs at equal compute: what is spent stays within the budget, evenly over the steps, and nobody loses an answer."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch

import driftline
from driftline.engine.stages.compute_budget import set_allowance
from driftline.errors import UserError
from driftline.learners import Learner, SupervisedLearner
from driftline.training.mac_counter import MacCounter
from driftline.types import Reveal

SPEC = {
    "benchmark": "refinement",
    "data": "digit-clusters",
    "model": {"name": "mlp", "width": 16},
    "refinement": {
        **{"episodes": 6, "queries_per_episode": 16, "upstream_set": 32, "held_out": 20, "upstream_updates": 20},
        **{"period": 6, "resamples": 5},
    },
}
PASS = 64 * 16 + 16 * 16 + 16 * 10  # one sample forward
BUDGET = 15_000_000


@dataclass
class Long(SupervisedLearner):
    """Far more updates than others."""

    updates: int = 400

    min_reveal = Reveal.ERRORS

    def learn(self, x, y):
        self.train(x, y)


@dataclass
class OwnLoop(Learner):
    """A training loop that knows nothing of budgets; it counts its rounds."""

    requires = "network"
    min_reveal = Reveal.ERRORS

    def prepare(self, model, task, upstream=None):
        super().prepare(model, task, upstream)
        self.rounds = 0

    def learn(self, x, y):
        self.rounds += 1
        inputs = torch.as_tensor(np.asarray(x), dtype=torch.float32)
        for _ in range(200):
            self.model(inputs).square().mean().backward()

    def diagnostics(self):
        return {"rounds": self.rounds}


def run(method, tmp_path, **more):
    return driftline.run(**SPEC, methods=[method], runs=tmp_path, **more).runs[0]


def test_the_allowance_grows_evenly_and_ends_at_the_budget():
    meter = MacCounter()
    found = []
    for step in range(5):
        set_allowance(meter, 100, step, 4)
        found.append(meter.allowance)
    assert found == [25, 50, 75, 100, 100], "the last is for the training at the end"
    meter.forward, meter.backward = 60, 39
    assert not meter.is_spent
    meter.backward = 40
    assert meter.is_spent
    set_allowance(free := MacCounter(), None, 0, 4)
    assert not free.is_spent


def test_training_stops_at_the_allowance_of_each_step(tmp_path):
    free, cut = run(Long, tmp_path), run(Long, tmp_path, budget_macs=BUDGET)
    update = 3 * 8 * PASS  # forward, and backward twice; less for the first layer's inputs
    assert free.card.compute.macs > 3 * BUDGET
    assert BUDGET - update - 16 * PASS <= cut.card.compute.macs <= BUDGET + update
    assert cut.card.run.budget_macs == BUDGET
    assert cut.key != free.key
    answers = cut.table("answers").groupby("step").first()
    spent = (answers["forward_macs"] + answers["backward_macs"]).to_numpy()[1:]  # before the training of each step
    allowed = BUDGET * np.arange(1, 6) / 6
    assert (spent <= allowed + update + 16 * PASS).all()
    assert (spent >= 0.8 * allowed).all(), "and all of it is used in every step"


def test_candidates_for_replay_are_ranked_only_within_the_budget(tmp_path):
    candidates = {"name": "mir", "n_candidates": 300}
    free, cut = (run(candidates, tmp_path, **more) for more in ({}, {"budget_macs": 2_000_000}))
    assert free.card.compute.macs > 2 * 2_000_000
    assert cut.card.compute.macs <= 2_000_000 + 3 * 8 * PASS, "one mini-batch"


def test_a_plan_of_fits_has_the_budget_of_the_benchmark_and_stops_at_equal_compute(tmp_path):
    """Its fits are as long as a training round of `erm`, and there is one of them per round, not a grid."""
    spec = {
        "benchmark": "timeline",
        "data": {"name": "digits", "periods": 2},
        "model": {"name": "conv-1", "width": 1},
        "timeline": {"resamples": 5},
        "runs": tmp_path,
    }
    planned, erm = driftline.run(**spec, methods=["seq-erm", "erm"]).runs
    assert 0.5 < planned.card.compute.macs / erm.card.compute.macs < 1.2
    (cut,) = driftline.run(**spec, methods=["seq-erm"], budget_macs=(budget := planned.card.compute.macs // 3)).runs
    assert 0.9 * budget < cut.card.compute.macs < 1.1 * budget


def test_a_cheap_method_is_not_changed_by_a_budget_it_does_not_reach(tmp_path):
    free, cut = run("cft", tmp_path), run("cft", tmp_path, budget_macs=10**12)
    assert free.table("scores").equals(cut.table("scores"))
    assert free.card.compute == cut.card.compute


def test_a_method_with_a_loop_of_its_own_waits_until_it_may_spend_again(tmp_path):
    free, cut = run(OwnLoop, tmp_path), run(OwnLoop, tmp_path, budget_macs=BUDGET)
    rounds = [one.table("diagnostics").query("gauge == 'rounds'")["value"].max() for one in (free, cut)]
    assert rounds[0] == 6
    assert 1 <= rounds[1] < 6
    assert len(cut.table("answers")) == len(free.table("answers")) == 6 * 16


def test_what_no_budget_can_cut_is_refused(tmp_path):
    trees = {"benchmark": "timeline", "data": "digits", "model": "logistic-regression", "methods": "erm"}
    with pytest.raises(UserError, match="the compute of logistic-regression is not counted"):
        driftline.run(trees | {"budget_macs": 1e9}, runs=tmp_path)
    planned = {"benchmark": "seq-to-final", "data": "color-digits", "model": "conv-1", "methods": "seq-ft"}
    with pytest.raises(UserError, match="seq-ft trains in fits that methods share, which a budget cannot cut"):
        driftline.run(
            {**planned, "seq-to-final": {"oracle": 0, "sizes": [100] * 4, "test": 50}, "budget_macs": 1e9},
            runs=tmp_path,
        )
