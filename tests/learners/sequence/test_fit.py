"""What a fit minimises, checked against sums made by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from driftline.learners.fit_plan import Expansion, FitSpec, SearchSpace
from driftline.learners.sequence.fit import FitRun, optimizer
from driftline.models.block_networks.base import BlockNetwork
from driftline.models.block_networks.conv import ConvFamily
from driftline.models.block_networks.joint import JointNetwork
from driftline.models.preprocessing import build_seeded
from driftline.seeds import Seed
from driftline.tasks import Classification
from driftline.training.batches import infinite_batches
from driftline.training.mac_counter import MacCounter
from driftline.training.measurements import layer_scores, merge_penalties, reference_fisher
from driftline.training.objectives import (
    IRM,
    JointOverSteps,
    Objective,
    WorstStepDRO,
    invariance_penalty,
    recency,
    scale_gradients,
)
from driftline.training.regularization import AdjacentSteps, FisherToStart, L1ToStart, L2ToStart, Penalty
from driftline.training.step_data import StepData
from driftline.types import TRAIN, VALIDATION

TASK = Classification(("a", "b", "c"))
FEW = SearchSpace(lr=(1e-2,), weight_decay=(0.0,), dropout=(0.0,), epochs=3, batch=6)


def step_data(k: int, n: int = 15) -> StepData:
    rng = np.random.default_rng(k)
    y = np.arange(n) % 3
    x = rng.integers(0, 60, (n, 16, 16, 1), dtype=np.uint8)
    for i, label in enumerate(y):
        x[i, 4 * label : 4 * label + 4] += np.uint8(120 + 10 * k)
    return StepData.of(x, y)


def network() -> BlockNetwork:
    return build_seeded(lambda: BlockNetwork(ConvFamily(1, 2, 3), 1), Seed(5))  # type: ignore[return-value]


def test_of_each_class_the_first_four_fifths_train() -> None:
    y = np.array([0, 1, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0])  # nine of the one, three of the other
    split = StepData.of(np.arange(12)[:, None], y)
    assert split.train_x[:, 0].tolist() == [0, 1, 2, 3, 4, 6, 7, 8, 9]  # floor(7.2) and floor(2.4)
    assert split.valid_x[:, 0].tolist() == [5, 10, 11]


def test_a_given_split_is_kept_and_every_class_trains() -> None:
    y, split = np.array([0, 0, 1, 2, 2]), np.array([VALIDATION, TRAIN, VALIDATION, VALIDATION, TRAIN])
    found = StepData.of(np.arange(5)[:, None], y, split)
    assert found.train_x[:, 0].tolist() == [1, 2, 4]  # class 1 has a single sample
    assert found.valid_x[:, 0].tolist() == [0, 3]


def test_four_fifths_of_five_hundred_is_not_lost_to_rounding() -> None:
    assert len(StepData.of(np.zeros((500, 1)), np.zeros(500, int)).train_y) == 400


def test_weight_decay_is_the_slope_of_the_sum_of_squares_and_spares_batch_norm() -> None:
    net = network()
    decay = 0.3
    by_hand = [p.detach().clone() for p in net.parameters()]
    for weight in net.parameters():
        weight.grad = torch.zeros_like(weight)
    made = optimizer("adam", net, lr=1.0, weight_decay=decay)
    assert {group["weight_decay"] for group in made.param_groups} == {2 * decay, 0}
    made.step()
    norms = [m for m in net.modules() if isinstance(m, nn.BatchNorm2d)]
    still = {id(p) for m in norms for p in m.parameters()}
    for before, weight in zip(by_hand, net.parameters(), strict=True):
        moved = not torch.equal(before, weight)
        assert moved == (id(weight) not in still and bool(before.abs().sum() > 0))


def fit(objective: Objective, net: nn.Module, steps: dict[int, StepData]) -> FitRun:
    return FitRun(FitSpec(tuple(steps), (max(steps),), objective=objective), net, {}, steps, TASK, FEW, Seed(2))


def first_loss(made: FitRun) -> torch.Tensor:
    return made.fit_spec.objective.loss(TASK, next(made.batches(1)))


def by_lesson(made: FitRun, net: nn.Module, step: bool = False) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Outputs and targets of the first batch of each step, drawn again from the same seeds."""
    pairs = []
    for k, t in enumerate(made.fit_spec.train):
        rows = next(infinite_batches(len(made.targets[t]), FEW.batch, made.seed.child("lesson", t)))
        x = made.inputs[t][rows].permute(0, 3, 1, 2).float() / 255
        pairs.append((net(x, step=k) if step else net(x), made.targets[t][rows]))
    return pairs


def test_dro_descends_on_the_worst_step_only() -> None:
    net, steps = network(), {0: step_data(0), 1: step_data(1), 2: step_data(2)}
    made = fit(WorstStepDRO(), net, steps)
    risks = [TASK.loss(out, y).mean().item() for out, y in by_lesson(made, net)]
    assert first_loss(made).item() == pytest.approx(max(risks), abs=1e-6)
    assert len({round(risk, 4) for risk in risks}) == 3


def test_dro_goes_back_through_the_worst_step_only() -> None:
    spent = []
    for steps in ({0: step_data(0)}, {0: step_data(0), 1: step_data(1), 2: step_data(2)}):
        net, meter = network(), MacCounter()
        meter.attach(net)
        made = fit(WorstStepDRO(), net, steps)
        first_loss(made).backward()
        spent.append((meter.forward, meter.backward))
    assert spent[1][0] == 3 * spent[0][0]
    assert spent[1][1] == spent[0][1] > 0


def test_irm_adds_the_mean_penalty_of_the_steps() -> None:
    net, steps = network(), {0: step_data(0), 1: step_data(1)}
    made = fit(IRM(7.0), net, steps)
    pairs = by_lesson(made, net)
    risk = np.mean([TASK.loss(out, y).mean().item() for out, y in pairs])
    penalty = np.mean([invariance_penalty(scale_gradients(out, y, TASK.loss)).item() for out, y in pairs])
    assert first_loss(made).item() == pytest.approx(risk + 7.0 * penalty, abs=1e-5)
    assert abs(penalty) > 1e-4


def test_the_joint_objective_is_the_mean_over_steps_with_the_last_threefold() -> None:
    net = JointNetwork(network(), dict.fromkeys(["conv1", "layer1", "fc"], "separate"))
    net.add_step(Seed(9))
    made = fit(JointOverSteps(), net, {0: step_data(0), 1: step_data(1)})
    first, last = (TASK.loss(out, y).mean().item() for out, y in by_lesson(made, net, step=True))
    assert first_loss(made).item() == pytest.approx((first + 3 * last) / 2, abs=1e-5)


def test_an_epoch_by_step_passes_once_over_the_largest() -> None:
    made = fit(IRM(), network(), {0: step_data(0, 30), 1: step_data(1, 15)})  # 24 and 12 to train on, in sixes
    assert len(list(made.batches(1))) == 4


def test_recent_steps_weigh_more() -> None:
    assert recency([2, 1, 1]).tolist() == pytest.approx(np.array([1 / 3, 1 / 3, 1 / 2, 1]) * 4 / (13 / 6))


def held(penalty: Penalty, net: nn.Module, anchor: dict[str, Any]) -> float:
    return penalty.bind(net, anchor)().item()


def test_penalties_to_the_start_are_zero_there_and_known_sums_elsewhere() -> None:
    net = network()
    anchor = {"start_weights": {name: value.clone() for name, value in net.state_dict().items()}}
    assert held(L2ToStart(2.0), net, anchor) == held(L1ToStart(2.0), net, anchor) == 0
    with torch.no_grad():
        for parameter in net.parameters():  # batch norm moves too, and must not count
            parameter += 0.5
    counted = sum(p.numel() for name, p in net.named_parameters() if p.ndim > 1 or name == "layers.fc.2.bias")
    assert held(L2ToStart(2.0), net, anchor) == pytest.approx(2.0 * 0.25 * counted, rel=1e-5)
    assert held(L1ToStart(2.0), net, anchor) == pytest.approx(2.0 * 0.5 * counted, rel=1e-5)


def test_the_fisher_penalty_has_a_half_and_an_importance() -> None:
    net = network()
    n = sum(p.numel() for p in net.parameters())
    flat = torch.cat([p.detach().reshape(-1) for p in net.parameters()])
    anchor = {"anchor": flat - 2.0, "importance": torch.arange(n, dtype=torch.float)}
    assert held(FisherToStart(3.0), net, anchor) == pytest.approx(3.0 / 2 * 4 * n * (n - 1) / 2, rel=1e-4)


def test_neighbours_in_time_are_tied_without_batch_norm() -> None:
    net = JointNetwork(network(), dict.fromkeys(["conv1", "layer1", "fc"], "separate"))
    net.add_step(Seed(9), copy_previous=True)
    assert held(AdjacentSteps(2.0), net, {}) == 0
    with torch.no_grad():
        for parameter in net.parameters_of(1):
            parameter += 1.0
    counted = sum(now.numel() for now, _ in net.adjacent_pairs(1))
    assert held(AdjacentSteps(2.0), net, {}) == pytest.approx(2.0 * counted, rel=1e-4)


def test_two_fisher_penalties_become_one_with_the_same_slope() -> None:
    rng = torch.Generator().manual_seed(0)
    a, p, b, q, w = (torch.rand(7, generator=rng) for _ in range(5))
    one = merge_penalties(a, p, b, q)
    slope = 2 * a * (w - p) + 2 * b * (w - q)
    assert torch.allclose(2 * one["importance"] * (w - one["anchor"]), slope, atol=1e-6)
    none = merge_penalties(torch.zeros(1), p[:1], torch.zeros(1), q[:1])
    assert none["anchor"] == q[:1]


def test_the_reference_fisher_squares_sums_over_batches() -> None:
    net, data = network(), step_data(0)
    net.standardize.fit(torch.zeros(2, 1, 16, 16))
    total = torch.zeros(sum(p.numel() for p in net.parameters()))
    x = torch.from_numpy(data.train_x).permute(0, 3, 1, 2).float() / 255
    for rows in torch.arange(len(data.train_y)).split(5):
        loss = TASK.loss(net(x[rows]), torch.from_numpy(data.train_y)[rows]).sum()
        grads = torch.autograd.grad(loss, list(net.parameters()))
        total += torch.cat([g.reshape(-1) for g in grads]) ** 2
    assert torch.allclose(reference_fisher(net, TASK, data, 5), total / len(data.train_y), rtol=1e-4, atol=1e-8)


@pytest.mark.parametrize("kind", ["rgn", "snr"])
def test_layer_scores_by_hand(kind: str) -> None:
    net, data = network(), step_data(0, 60)  # twelve mini-batches of four
    x = torch.from_numpy(data.train_x).permute(0, 3, 1, 2).float() / 255
    grads: dict[str, list[torch.Tensor]] = {name: [] for name, _ in net.named_parameters()}
    for rows in torch.arange(len(data.train_y)).split(4):
        loss = TASK.loss(net(x[rows]), torch.from_numpy(data.train_y)[rows]).mean()
        for name, grad in zip(grads, torch.autograd.grad(loss, list(net.parameters())), strict=True):
            grads[name].append(grad)
    weights = dict(net.named_parameters())
    expected = {}
    for layer in ("conv1", "layer1", "fc"):
        ratios = []
        for name in (name for name in grads if name.startswith(f"layers.{layer}.")):
            stacked = torch.stack(grads[name])
            if kind == "rgn":
                norms = stacked.flatten(1).norm(dim=1).mean()
                ratios.append((norms / weights[name].norm().clamp_min(1e-8)).item())
            else:
                ratios.append((stacked.mean(0) ** 2 / (stacked.var(0, correction=0) + 1e-8)).mean().item())
        expected[layer] = np.mean(ratios)
    assert layer_scores(net, TASK, data, 4, kind) == pytest.approx(expected, rel=1e-2)


def test_a_fit_scores_what_it_keeps_and_trials_meet_the_same_batches() -> None:
    steps = {0: step_data(0, 60)}
    fit_spec = FitSpec((0,), (0,), lr=1e-2)
    net = network()
    first = FitRun(fit_spec, net, {}, steps, TASK, FEW, Seed(4)).run()
    again = FitRun(fit_spec, network(), {}, steps, TASK, FEW, Seed(4)).run()
    assert first["curve"] == again["curve"]
    assert all(torch.equal(first["weights"][name], again["weights"][name]) for name in first["weights"])
    assert first["score"] == max(first["curve"])
    assert first["curve"].index(first["score"]) == first["epoch"]
    kept = network()
    kept.load_state_dict(first["weights"])
    x = torch.from_numpy(steps[0].valid_x).permute(0, 3, 1, 2).float() / 255
    with torch.no_grad():
        right = (kept(x).argmax(1).numpy() == steps[0].valid_y).mean()
    assert first["score"] == pytest.approx(right)


def test_only_what_a_growth_leaves_free_moves() -> None:
    net = JointNetwork(network(), {"conv1": "separate", "layer1": "side-1", "fc": "separate"})
    net.add_step(Seed(9), copy_previous=True)
    net.freeze(before=1)
    before = {name: value.clone() for name, value in net.state_dict().items()}
    fit_spec = FitSpec((0,), (0,), lr=1e-2, growth=Expansion("side-1", "separate", 2), penalty=AdjacentSteps(0.1))
    found = FitRun(fit_spec, net, {}, {0: step_data(0, 60)}, TASK, replace(FEW, epochs=2), Seed(4)).run()
    moved = {name for name, value in net.state_dict().items() if not torch.equal(value, before[name])}
    assert moved
    assert all(".steps.1." in name or name.startswith("standardize") for name in moved), moved
    assert found["epoch"] <= 2
