"""Methods that are plans of fits: what each plans, what methods share, and what must come out equal."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

from driftline import registry
from driftline.errors import UserError
from driftline.learners.fit_plan import FitSpec, SearchSpace, required_fits
from driftline.learners.sequence.base import PlannedLearner
from driftline.learners.sequence.fit import FitRun
from driftline.learners.sequence.from_scratch import AllSteps, FinalOnly
from driftline.learners.sequence.joint import JointTraining
from driftline.learners.sequence.layer_rules import tuning_stages
from driftline.learners.sequence.layerwise_tuning import STEP_BY_STEP, LayerwiseTuning, lr_schedules
from driftline.models.block_networks.base import BlockNetwork
from driftline.models.block_networks.conv import ConvFamily
from driftline.models.block_networks.residual import ResFamily
from driftline.models.preprocessing import build_seeded
from driftline.seeds import Seed
from driftline.tasks import Classification
from driftline.training.fisher import fisher
from driftline.training.step_data import StepData

TASK = Classification(("a", "b", "c"))
STEPS = 4
FEW = SearchSpace(lr=(3e-3, 1e-3), weight_decay=(1e-4,), dropout=(0.0,), adjacent=(0.1,), epochs=2, batch=20)


def labeled_steps(n: int = 60) -> list[tuple[np.ndarray, np.ndarray]]:
    """Bright bands on noise, a little brighter and lower at each step; the last step turns the labels round."""
    made = []
    for k in range(STEPS):
        rng = np.random.default_rng(k)
        y = np.arange(n) % 3
        x = rng.integers(0, 120, (n, 16, 16, 1), dtype=np.uint8)
        for i, label in enumerate(y):
            x[i, 4 * label + k : 4 * label + k + 3] += np.uint8(60 + 10 * k)
        made.append((x, 2 - y if k == STEPS - 1 else y))
    return made


def prepared(
    learner: PlannedLearner, family: Any = ConvFamily, selection: SearchSpace = FEW, width: int = 4
) -> PlannedLearner:
    learner.set_search_space(selection)
    learner.seed, learner.evaluated_at_end = Seed(3), True
    network = build_seeded(lambda: BlockNetwork(family(1, width, 3), 1), Seed(1))
    learner.prepare(network, TASK)
    return learner


def trained_learner(learner: PlannedLearner, **settings: Any) -> PlannedLearner:
    learner = prepared(learner, **settings)
    for x, y in labeled_steps():
        learner.learn(x, y)
    learner.finish()
    return learner


def planned(name: str, selection: SearchSpace | None = None) -> list[FitSpec]:
    learner = prepared(registry.get("method", name)(), ResFamily, selection or SearchSpace())
    return list(required_fits(learner.plan(STEPS)))


def phases(name: str, budget: Any) -> Counter[tuple[tuple[int, ...], str]]:
    return Counter(
        (fit_spec.train, (fit_spec.measurement or fit_spec.objective).name)
        for fit_spec in planned(name, SearchSpace(budget=budget))
    )


PAST, ALL = (0, 1, 2), (0, 1, 2, 3)


@pytest.mark.parametrize(
    ("name", "same", "paper"),
    [
        ("baseline", {((3,), "erm"): 8}, {((3,), "erm"): 8}),
        ("oracle", {((3,), "erm"): 8}, {((3,), "erm"): 8}),
        ("seq-erm", {(ALL, "erm"): 8}, {(ALL, "erm"): 8}),
        ("seq-irm", {(ALL, "irm"): 8}, {(ALL, "irm"): 8}),
        ("seq-dro", {(ALL, "dro"): 8}, {(ALL, "dro"): 8}),
        ("seq-ft", {(PAST, "erm"): 8, ((3,), "erm"): 8}, {(PAST, "erm"): 8, ((3,), "erm"): 8}),
        ("lp-ft", {(PAST, "erm"): 8, ((3,), "erm"): 16}, {(PAST, "erm"): 8, ((3,), "erm"): 16}),
        ("i-ft", {(PAST, "irm"): 8, ((3,), "erm"): 8}, {(PAST, "irm"): 8, ((3,), "erm"): 8}),
        ("d-ft", {(PAST, "dro"): 8, ((3,), "erm"): 8}, {(PAST, "dro"): 8, ((3,), "erm"): 8}),
        ("st-1", {(PAST, "erm"): 8, ((3,), "erm"): 8}, {(PAST, "erm"): 8, ((3,), "erm"): 24}),
        ("st-b", {(PAST, "erm"): 8, ((3,), "erm"): 8}, {(PAST, "erm"): 8, ((3,), "erm"): 24}),
        ("sft", {((t,), "erm"): 8 for t in ALL}, {((t,), "erm"): 8 for t in ALL}),
        ("sst-1", {((t,), "erm"): 8 for t in ALL}, {((0,), "erm"): 8, **{((t,), "erm"): 24 for t in (1, 2, 3)}}),
        ("sst-b", {((t,), "erm"): 8 for t in ALL}, {((0,), "erm"): 8, **{((t,), "erm"): 24 for t in (1, 2, 3)}}),
        (
            "seq-ewc",
            {**{((t,), "erm"): 8 for t in ALL}, **{((t,), "fisher"): 1 for t in PAST}},
            {**{((t,), "erm"): 8 for t in ALL}, **{((t,), "fisher"): 1 for t in PAST}},
        ),
        ("jm", {(ALL, "joint"): 8}, {(ALL, "joint"): 3}),
        ("jst-1", {(ALL, "joint"): 8}, {(ALL, "joint"): 1}),
        ("jst-b", {(ALL, "joint"): 8}, {(ALL, "joint"): 1}),
    ],
)
def test_what_each_method_fits_under_both_budgets(name: str, same: dict[Any, int], paper: dict[Any, int]) -> None:
    assert phases(name, "same") == same
    assert phases(name, "paper") == paper


def test_what_methods_share() -> None:
    past = {fit_spec.key for fit_spec in planned("seq-ft") if fit_spec.train == PAST}
    first = {fit_spec.key for fit_spec in planned("sft") if fit_spec.train == (0,)}
    for name in ("lp-ft", "st-1", "st-b"):
        assert past <= {fit_spec.key for fit_spec in planned(name)}, name
    for name in ("seq-ewc", "sst-1", "sst-b"):
        assert first <= {fit_spec.key for fit_spec in planned(name)}, name
    assert not past & {fit_spec.key for fit_spec in planned("i-ft")}


def test_history_never_contains_the_final_step() -> None:
    for name in ("seq-ft", "i-ft", "d-ft", "lp-ft", "st-1"):
        assert {fit_spec.train for fit_spec in planned(name)} == {PAST, (3,)}
        assert {fit_spec.valid for fit_spec in planned(name) if fit_spec.train == PAST} == {PAST}


def test_pooled_methods_are_chosen_at_the_final_step_alone() -> None:
    for name in ("seq-erm", "seq-irm", "seq-dro", "jm", "jst-1"):
        assert {fit_spec.valid for fit_spec in planned(name)} == {(3,)}


def test_ewc_has_its_penalty_in_place_of_weight_decay() -> None:
    fits = [fit_spec for fit_spec in planned("seq-ewc") if fit_spec.trains and fit_spec.train != (0,)]
    assert {fit_spec.weight_decay for fit_spec in fits} == {0.0}
    assert {fit_spec.penalty.weight for fit_spec in fits} == set(SearchSpace.fisher)
    assert {fit_spec.penalty.name for fit_spec in fits} == {"fisher-all"}


@pytest.mark.parametrize(
    ("decay", "expected"),
    [
        ("linear", [[1e-3, 9e-4, 8e-4, 7e-4], [1e-4, 9e-5, 8e-5, 7e-5]]),
        (
            "exponential",
            [[2e-3, 1e-3, 5e-4, 2.5e-4], [2e-4, 1e-4, 5e-5, 2.5e-5], [2e-4, 1.5e-4, 1.125e-4, 8.4375e-5]],
        ),
    ],
)
def test_learning_rates_fall_as_in_the_paper(decay: str, expected: list[list[float]]) -> None:
    assert np.allclose(np.array(lr_schedules(decay, 4), float), expected, rtol=1e-12)


def test_chosen_lets_all_schedules_compete_and_none_starts_from_another() -> None:
    plan = prepared(STEP_BY_STEP(decay="chosen"), selection=SearchSpace()).plan(STEPS)
    fits = list(required_fits(plan))
    alone = 4 * 8 + 2 * 4 * 4 + 3 * 4 * 4
    assert len(fits) == alone - 3 * 4  # schedules with the same first rate share their first step
    assert len(plan.fits) == 8 + 2 * 4 + 3 * 4
    assert len({fit_spec.start.key for fit_spec in plan.fits if fit_spec.start}) == 6


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("first-to-last", [("conv1",), ("conv1", "layer1"), ("conv1", "layer1", "layer2"), None]),
        ("last-to-first", [("fc",), ("layer2", "fc"), ("layer1", "layer2", "fc"), None]),
        ("fc>all", [("fc",), None]),
        ("fc,conv1", [("conv1", "fc")]),
    ],
)
def test_layers_in_stages(rule: str, expected: list[Any]) -> None:
    assert tuning_stages(rule, ["conv1", "layer1", "layer2", "fc"]) == [[alternative] for alternative in expected]


def test_search_tries_every_set_of_layers() -> None:
    (alternatives,) = tuning_stages("search", ["conv1", "layer1", "layer2", "fc"])
    assert len(alternatives) == len({a if a else "all" for a in alternatives}) == 2**4 - 1


def test_surgical_tuning_orders_layers_by_what_it_measured() -> None:
    learner = trained_learner(LayerwiseTuning(layers="rgn"))
    fits = list(required_fits(learner.plan(STEPS)))
    measured = next(fit_spec for fit_spec in fits if fit_spec.measurement and fit_spec.measurement.name == "rgn")
    outcome = learner.outcomes[measured.key]
    scores = outcome["layer_scores"]
    assert outcome["order"] == sorted(scores, key=scores.__getitem__, reverse=True)
    assert {fit_spec.top for fit_spec in fits if fit_spec.train == (3,) and fit_spec.trains} == {1, 2, 3}


def test_a_beam_keeps_several_models() -> None:
    fits = list(required_fits(prepared(STEP_BY_STEP(layers="search", beam=2), selection=FEW).plan(3)))
    first, second = ([t for t in fits if t.train == (step,)] for step in (1, 2))
    assert len(first) == 2 * 7 * 2  # two survivors, seven sets of layers, two points
    assert len(second) == 2 * 7 * 2
    assert {t.start.rank for t in second if t.start} == {0, 1}
    learner = trained_learner(STEP_BY_STEP(layers="fc", beam=2))
    assert learner.n_steps_fitted == STEPS


def same_answers(one: PlannedLearner, other: PlannedLearner) -> bool:
    x = labeled_steps(90)[-1][0]
    return bool(np.array_equal(one.predict(x).scores, other.predict(x).scores))


def test_a_frozen_joint_model_that_starts_from_history_is_fine_tuning() -> None:
    fine = trained_learner(LayerwiseTuning())
    joint = trained_learner(LayerwiseTuning(structure="separate", tied=False))
    fresh = trained_learner(LayerwiseTuning(structure="separate", tied=False, ends="random"))
    assert same_answers(fine, joint)  # Table 15, and here to the last bit
    assert not same_answers(fine, fresh)


def test_a_frozen_joint_model_pulled_to_history_is_fine_tuning_pulled_to_it() -> None:
    selection = SearchSpace(lr=(3e-3, 1e-3), weight_decay=(1e-3, 0.1), dropout=(0.0,), epochs=2, batch=20)
    fine, joint = (
        trained_learner(LayerwiseTuning(**settings), selection=selection)
        for settings in ({"penalty": "l2"}, {"structure": "separate"})
    )
    assert same_answers(fine, joint)  # Table 15 again
    assert not same_answers(fine, trained_learner(LayerwiseTuning(), selection=selection))
    anchored = trained_learner(LayerwiseTuning(penalty="l2", from_initial=True), selection=selection)
    tuned = [fit_spec for fit_spec in required_fits(anchored.plan(STEPS)) if fit_spec.train == (3,)]
    assert {(fit_spec.weight_decay, fit_spec.penalty.weight) for fit_spec in tuned} == {(0.0, 1e-3), (0.0, 0.1)}


def test_staged_tuning_is_held_to_the_model_before_the_step() -> None:
    learner = trained_learner(LayerwiseTuning(layers="fc>all", penalty="l2"))
    plan = learner.plan(STEPS)
    winner = learner.chosen(plan.best)
    assert winner.start is not None
    probe = learner.chosen(winner.start)
    past = learner.outcome(learner.chosen(probe.start))  # type: ignore[arg-type]
    held_to = learner.outcome(winner)["start_weights"]
    assert all(torch.equal(held_to[name], past["weights"][name]) for name in past["weights"])


def test_measured_layers_are_pulled_to_the_step_before_and_not_to_the_first() -> None:
    learner = trained_learner(STEP_BY_STEP(layers="rgn", penalty="l2"))
    winner = learner.chosen(learner.plan(STEPS).best)
    before = learner.outcome(learner.chosen(winner.start))  # type: ignore[arg-type]
    held_to = learner.outcome(winner)["start_weights"]
    assert all(torch.equal(held_to[name], before["weights"][name]) for name in held_to)


def test_the_same_budget_is_never_exceeded_by_a_grid() -> None:
    small = SearchSpace(lr=(1e-3, 3e-4), weight_decay=(1e-4,), dropout=(0.0,))
    for name in ("seq-ewc", "st-1", "sst-1", "jm", "jst-1", "sft", "lp-ft"):
        counts = Counter((t.train, t.layers, t.objective.name) for t in planned(name, small) if t.trains)
        assert set(counts.values()) == {2}, name


def test_schedules_hold_for_side_modules_too() -> None:
    learner = prepared(STEP_BY_STEP(structure="side-1", decay="linear"), ResFamily)
    last = sorted({fit_spec.lr for fit_spec in learner.plan(STEPS).fits})
    assert last == pytest.approx([7e-5, 7e-4])


def test_ewc_remembers_the_importance_of_all_earlier_steps() -> None:
    for penalty, kept in (("fisher-all", 3), ("fisher", 1)):
        learner = trained_learner(STEP_BY_STEP(penalty=penalty))
        fits = [fit_spec for fit_spec in required_fits(learner.plan(STEPS)) if fit_spec.measurement]
        assert [fit_spec.train for fit_spec in fits] == [(0,), (1,), (2,)]
        sums = []
        for fit_spec in fits:
            network = learner.network_of(fit_spec.start)
            shown = StepData.of(*learner.step_samples[fit_spec.train[0]])
            alone = fisher(network, TASK, shown.train_x, shown.train_y, labels="empirical", seed=learner.seed)
            sums.append(alone)
        found = learner.outcomes[fits[-1].key]["importance"]
        torch.testing.assert_close(found, torch.stack(sums[-kept:]).sum(0), rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize(
    "make",
    [
        partial(LayerwiseTuning, structure="side-1", ends="additive"),
        partial(LayerwiseTuning, structure="side-1", ends="random"),
        partial(LayerwiseTuning, structure="low-rank-add", rank=1),
        partial(LayerwiseTuning, structure="low-rank-multiply", rank=1),
        partial(LayerwiseTuning, layers="snr", penalty="fisher"),
        partial(LayerwiseTuning, layers="first-to-last", penalty="l1"),
        partial(LayerwiseTuning, history="weighted"),
        partial(STEP_BY_STEP, layers="fc:all:fc>all", decay="exponential"),
        partial(STEP_BY_STEP, penalty="fisher", reference_fisher=True),
        partial(STEP_BY_STEP, penalty="fisher", layers="fc>all"),
        partial(STEP_BY_STEP, layers="fc:rgn:all"),
        partial(LayerwiseTuning, layers="layer1,fc", moving_statistics=True),
        partial(LayerwiseTuning, structure="low-rank-add", rank=1, low_rank_start="reference"),
        partial(STEP_BY_STEP, structure="low-rank-add", rank=1),
        partial(JointTraining, shared=("conv1",)),
        partial(JointTraining, structure="low-rank-add", rank=1),
    ],
)
def test_other_combinations_train_and_answer(make: Any) -> None:
    learner = trained_learner(make(), selection=replace(FEW, lr=(1e-2,), epochs=3), width=8)
    x, _ = labeled_steps(90)[-1]
    assert np.isfinite(np.asarray(learner.predict(x).scores)).all()
    best = max(row["score"] for row in learner.fit_table() if row["valid"] == str(STEPS - 1))
    assert best > 0.34  # three classes, and all bands are plain to see


def test_history_that_is_only_an_anchor_starts_from_the_initial_weights() -> None:
    learner = trained_learner(LayerwiseTuning(from_initial=True, penalty="l2"))
    (fit_spec, *_) = [t for t in required_fits(learner.plan(STEPS)) if t.train == (3,)]
    begun = learner.initial_network(fit_spec)
    first = learner._initial
    assert all(torch.equal(a, b) for a, b in zip(begun.parameters(), first.parameters(), strict=True))


@pytest.mark.parametrize(
    "make",
    [LayerwiseTuning, partial(LayerwiseTuning, layers="fc>all"), STEP_BY_STEP, AllSteps, FinalOnly, JointTraining],
)
def test_what_an_engine_hands_over_changes_nothing(make: Any) -> None:
    alone = trained_learner(make())
    helped = prepared(make())
    helped.set_fit_lookup(lambda key, whole: dict(alone.outcomes[key]) if not whole or _whole(alone, key) else None)
    for x, y in labeled_steps():
        helped.learn(x, y)
    helped.finish()
    assert same_answers(alone, helped)
    assert helped.fit_table() == alone.fit_table()


def _whole(learner: PlannedLearner, key: str) -> bool:
    return "weights" in learner.outcomes[key]


def test_an_account_names_the_winner_of_every_phase() -> None:
    rows = trained_learner(LayerwiseTuning(layers="fc>all")).fit_table()
    assert len(rows) == 3 * 2
    assert sum(row["picked"] for row in rows) == 3
    for train, layers in (("0,1,2", "all"), ("3", "fc"), ("3", "all")):
        phase = [row for row in rows if (row["train"], row["layers"]) == (train, layers)]
        best = max(row["score"] for row in phase)
        assert [row["picked"] for row in phase].index(True) == [row["score"] for row in phase].index(best)


def test_linear_probing_moves_nothing_but_the_head() -> None:
    learner = trained_learner(LayerwiseTuning(layers="fc"))
    past = learner.network_of(next(t.start for t in learner.plan(STEPS).fits if t.start))
    before, after = past.state_dict(), learner.model.state_dict()
    moved = {name for name in after if not torch.equal(before[name], after[name])}
    assert moved <= {"layers.fc.2.weight", "layers.fc.2.bias"}


def test_side_modules_leave_the_old_network_as_it_was() -> None:
    learner = trained_learner(STEP_BY_STEP(structure="side-1"), family=ResFamily)
    assert learner.model.steps == STEPS
    first = learner.network_of(next(iter(_walk(learner))))
    for name, value in first.state_dict().items():
        layer = name.removeprefix("layers.")
        if layer.startswith("layer1."):
            kept = learner.model.state_dict()[f"layers.layer1.steps.0.{layer.removeprefix('layer1.')}"]
            assert torch.equal(kept, value), name


def _walk(learner: PlannedLearner) -> list[Any]:
    """The picks that the present model goes back to, the first step's first."""
    picks, pick = [], learner.plan(learner.n_steps_fitted).best
    while pick is not None:
        picks.append(pick)
        pick = learner.chosen(pick).start  # type: ignore[assignment]
    return picks[::-1]


@pytest.mark.parametrize(("tie", "closest", "farthest"), [(0.0, 0.5, np.inf), (100.0, 0.0, 0.02)])
def test_joint_models_are_as_far_apart_as_their_tie_allows(tie: float, closest: float, farthest: float) -> None:
    selection = SearchSpace(
        lr=(1e-2,), weight_decay=(1e-4,), dropout=(0.0,), adjacent=(tie,), epochs=30, patience=30, batch=20
    )
    learner = prepared(JointTraining(), selection=selection, width=2)
    (fit_spec,) = learner.plan(STEPS).fits
    network = learner.initial_network(fit_spec)
    shown = {t: StepData.of(x, y) for t, (x, y) in enumerate(labeled_steps())}
    FitRun(fit_spec, network, {}, shown, TASK, selection, Seed(1)).run()
    with torch.no_grad():
        pairs = [(a, b) for step in range(1, STEPS) for a, b in network.adjacent_pairs(step)]
        apart = sum((a - b).square().sum() for a, b in pairs) / sum(a.square().sum() for a, _ in pairs)
    assert closest <= apart <= farthest


@pytest.mark.parametrize(
    ("make", "family", "words"),
    [
        (partial(LayerwiseTuning, structure="side-block"), ConvFamily, "side block"),
        (partial(LayerwiseTuning, layers="layer9"), ConvFamily, "layer9"),
        (partial(STEP_BY_STEP, layers="fc:layer9:rgn"), ConvFamily, "layer9"),
        (partial(JointTraining, shared=("head",)), ConvFamily, "head"),
    ],
)
def test_what_cannot_be_built_is_refused_before_training(make: Any, family: Any, words: str) -> None:
    with pytest.raises(UserError, match=words):
        prepared(make(), family)


def test_settings_that_mean_nothing_together_are_refused() -> None:
    with pytest.raises(UserError, match="structure=side-1"):
        LayerwiseTuning(structure="side-1", layers="fc")
    with pytest.raises(UserError, match="beam"):
        prepared(STEP_BY_STEP(beam=0))
    with pytest.raises(UserError, match="from_initial"):
        LayerwiseTuning(from_initial=True)
    with pytest.raises(UserError, match=r"irm_weight=-1\.0: should be greater than or equal to 0"):
        prepared(LayerwiseTuning(irm_weight=-1.0))
    with pytest.raises(UserError, match="use sft"):
        prepared(LayerwiseTuning(layers="fc:all:all")).plan(STEPS)


def test_layers_need_names() -> None:
    from torch import nn

    plain = nn.Sequential(nn.Flatten(), nn.Linear(256, 3))
    numbered = nn.Module()
    numbered.layers = nn.Sequential(nn.Flatten(), nn.Linear(256, 3))
    for network in (plain, numbered):
        with pytest.raises(UserError, match="named blocks"):
            registry.get("method", "lp-ft")().prepare(network, TASK)
