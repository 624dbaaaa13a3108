"""Multiply-accumulates, counted by hand and by torch's own counter around a real training loop."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from driftline import models
from driftline.seeds import Seed
from driftline.testing import digest
from driftline.training import mac_counter
from driftline.training.fit import Update, fit, optimizer_step
from driftline.training.mac_counter import MacCounter, count_macs, mac_counter_of
from driftline.training.torch_model import torch_model

# Per image of 32 x 32: output pixels x 9 weights x channels in x channels out, for each of four convolutions; a head.
CONV = [32 * 32 * 9 * 3 * 32, 16 * 16 * 9 * 32 * 32, 8 * 8 * 9 * 32 * 32, 4 * 4 * 9 * 32 * 32]
HEAD = 32 * 2


def metered(model: nn.Module) -> MacCounter:
    meter = MacCounter()
    meter.attach(model)
    return meter


def counts(meter: MacCounter) -> tuple[int, int]:
    return meter.forward, meter.backward


def test_a_linear_layer() -> None:
    model = nn.Linear(5, 3)
    meter = metered(model)
    loss = model(torch.zeros(4, 5)).sum()
    assert counts(meter) == (4 * 5 * 3, 0)  # a backward pass counts only when it happens
    loss.backward()
    assert counts(meter) == (60, 60)  # the weights' gradient; nobody needs that of the inputs
    model(torch.zeros(4, 5, requires_grad=True)).sum().backward()
    assert counts(meter) == (120, 60 + 120)
    with torch.no_grad():
        model(torch.zeros(2, 5))
    assert counts(meter) == (150, 180)


def test_two_layers_and_a_frozen_one() -> None:
    model = nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 3))
    meter = metered(model)
    model(torch.zeros(1, 5)).sum().backward()
    assert counts(meter) == (35 + 21, 35 + 2 * 21)
    model[0].requires_grad_(False)
    model(torch.zeros(1, 5)).sum().backward()
    assert counts(meter) == (2 * 56, 77 + 21)
    model[0].requires_grad_(True)
    model[2].requires_grad_(False)
    model(torch.zeros(1, 5)).sum().backward()
    assert counts(meter) == (3 * 56, 98 + 35 + 21)


def test_a_convolution_that_sees_the_inputs_makes_no_input_gradient() -> None:
    model = nn.Sequential(nn.Conv2d(2, 4, 3), nn.Conv2d(4, 6, 1))
    meter = metered(model)
    model(torch.zeros(3, 2, 8, 8)).sum().backward()
    first, second = 3 * 36 * 9 * 2 * 4, 3 * 36 * 4 * 6
    assert counts(meter) == (first + second, first + 2 * second)


def test_the_yearbook_network() -> None:
    model = models.build("yearbook-cnn", (32, 32, 1), 2)
    meter = metered(model)
    torch_model(model).predict(np.zeros((5, 32, 32, 1), np.uint8))
    forward = sum(CONV) + HEAD
    assert forward == 3_981_376
    assert counts(meter) == (5 * forward, 0)
    model.train()(torch.zeros(2, 1, 32, 32)).sum().backward()
    assert counts(meter) == (7 * forward, 2 * (2 * forward - CONV[0]))


def plain(model: nn.Module, optimizer: torch.optim.Optimizer) -> Update:
    return lambda x, y: optimizer_step(optimizer, nn.functional.cross_entropy(model(x), y))


def test_it_agrees_with_torchs_counter_around_the_same_training() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 256, (40, 32, 32, 1), dtype=np.uint8), rng.integers(0, 2, 40)
    model = models.build("yearbook-cnn", (32, 32, 1), 2, width=8)
    meter = metered(model)
    twin = copy.deepcopy(model)
    twin._forward_hooks.clear()
    for network in (model, twin):
        optimizer = torch.optim.Adam(network.parameters())
        with FlopCounterMode(display=False) as counter:
            fit(network, x, y, plain(network, optimizer), updates=3, batch=8, seed=Seed(0))
            torch_model(network).predict(x)
        total = counter.get_total_flops()
    assert sum(counts(meter)) * 2 == total
    assert digest(dict(model.state_dict())) == digest(dict(twin.state_dict()))  # and counting moved nothing


class Attention(nn.Module):
    """Attention of the rows of each sample to each other."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.func.vmap(torch.linalg.vector_norm)(torch.einsum("nij,kj->nik", self.layer(x), x[0]))


@pytest.mark.parametrize(
    "model",
    [
        Attention(),
        nn.Sequential(nn.Conv1d(5, 10, 3, groups=5, padding=1), nn.ConvTranspose1d(10, 5, 2)),
        nn.Sequential(nn.Flatten(), nn.Linear(40, 3, bias=False)),
    ],
)
def test_operations_count_as_in_torchs_counter(model: nn.Module) -> None:
    counted = count_macs(model, (torch.rand(3, 5, 8),), {}, backward=True)
    with FlopCounterMode(display=False) as forward:
        outputs = model(torch.rand(3, 5, 8))
    with FlopCounterMode(display=False) as backward:
        outputs.sum().backward()
    assert counted == (forward.get_total_flops() // 2, backward.get_total_flops() // 2)
    assert min(counted) > 0


def test_gradients_that_are_returned_count_as_a_backward_pass() -> None:
    model = nn.Linear(5, 3)
    meter = metered(model)
    torch.autograd.grad(model(torch.ones(2, 5)).sum(), list(model.parameters()))
    assert counts(meter) == (30, 30)


class Pairs(nn.Module):
    """The products of all pairs of rows: its work grows with their square."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ x.T


class Rescaled(nn.Module):
    """A product of weights, which is the same for any number of rows, before the rows."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Parameter(torch.ones(5, 2)), nn.Parameter(torch.ones(2, 3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ (self.left @ self.right)


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (nn.Linear(5, 3), {1: 15, 2: 30, 3: 45, 9: 135, 100: 1500}),
        (Pairs(), {1: 5, 2: 20, 3: 45, 9: 405, 100: 50_000}),
        (Rescaled(), {1: 45, 2: 60, 3: 75, 9: 165, 100: 1530}),
    ],
)
def test_passes_of_any_number_of_rows(model: nn.Module, expected: dict[int, int]) -> None:
    for order in (list(expected), list(expected)[::-1]):
        network = copy.deepcopy(model)
        meter, counted = metered(network), {}
        for n in order:
            before = meter.forward
            network(torch.ones(n, 5))
            counted[n] = meter.forward - before
        assert counted == expected


def test_two_rows_tell_the_work_of_every_larger_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, bool]] = []

    def count(model: nn.Module, args: Any, kwargs: Any, backward: bool) -> tuple[int, int]:
        seen.append((len(args[0]), backward))
        return count_macs(model, args, kwargs, backward)

    monkeypatch.setattr(mac_counter, "count_macs", count)
    model = models.build("mlp", (8, 8, 1), 10)
    meter = metered(model)
    for n in (64, 7, 64, 200):
        model(torch.ones(n, 1, 8, 8)).sum().backward()
    model[-1].requires_grad_(False)
    model(torch.ones(50, 1, 8, 8)).sum().backward()
    assert seen == [(2, True), (3, True), (2, True)]
    row = sum(layer.weight.numel() for layer in model.modules() if isinstance(layer, nn.Linear))
    assert meter.forward == row * (64 + 7 + 64 + 200 + 50)


def test_counting_moves_neither_weights_nor_statistics_nor_random_numbers() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5)).train()
    plain = copy.deepcopy(model)
    metered(model)
    results = []
    for network in (model, plain):
        with torch.random.fork_rng():
            torch.manual_seed(0)
            out = network(torch.arange(12.0).reshape(3, 4))
            out.sum().backward()
            results.append(digest([out, dict(network.state_dict()), network[0].weight.grad, torch.get_rng_state()]))
    assert results[0] == results[1]


def test_copies_report_to_the_same_meter() -> None:
    model = nn.Linear(5, 3)
    meter = metered(model)
    twin = copy.deepcopy(copy.deepcopy(model))
    twin(torch.zeros(1, 5))
    model(torch.zeros(1, 5))
    assert meter.forward == 30


def test_counts_survive_a_restart() -> None:
    meter = MacCounter()
    meter.restore({"forward": 3, "backward": 4, "probe_macs": 5, "saved": 6})
    assert meter.state() == {"forward": 3, "backward": 4, "probe_macs": 5, "saved": 6}


def test_evaluations_are_not_the_methods_cost() -> None:
    model = nn.Linear(4, 2, bias=False)
    meter = metered(model)
    meter.probing = True
    model(torch.zeros(3, 4))
    assert (meter.forward, meter.probe_macs) == (0, 24)
    meter.probing = False
    model(torch.zeros(3, 4))
    assert (meter.forward, meter.probe_macs) == (24, 24)


def test_each_step_of_a_joint_network_costs_its_own() -> None:
    from driftline.learners.fit_plan import Expansion
    from driftline.learners.sequence.growth import expand
    from driftline.models.block_networks.base import BlockNetwork
    from driftline.models.block_networks.conv import ConvFamily

    plain = BlockNetwork(ConvFamily(1, 2, 3), 1).eval()
    meter = MacCounter()
    meter.attach(plain)
    joint = expand(plain, Expansion("side-1", "side-1", 3), Seed(0))
    costs = []
    for step in (0, 1, 2, 0):
        before = meter.forward
        with torch.no_grad():
            joint(torch.zeros(2, 1, 16, 16), step=step)
        costs.append(meter.forward - before)
    assert costs[1] == 2 * costs[0] > 0
    assert costs[2] == 3 * costs[0]
    assert costs[3] == costs[0]


def test_a_method_says_what_no_pass_shows() -> None:
    model = nn.Linear(5, 3)
    meter = metered(model)
    assert mac_counter_of(model) is meter
    assert mac_counter_of(copy.deepcopy(model)) is meter
    mac_counter_of(model).add(forward=7, backward=14, saved=100)
    meter.probing = True
    mac_counter_of(model).add(forward=5, saved=100)
    assert meter.state() == {"forward": 7, "backward": 14, "probe_macs": 5, "saved": 100}
    fresh = MacCounter()
    fresh.restore(meter.state())
    assert fresh.state() == meter.state()
    mac_counter_of(nn.Linear(1, 1)).add(forward=1)  # a network without a meter: nobody reads it
