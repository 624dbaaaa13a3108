from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from driftline import models
from driftline.errors import UserError
from driftline.models.block_networks.joint import JointNetwork
from driftline.models.block_networks.low_rank import LowRankAdapter, adapted_weights
from driftline.seeds import Seed

KINDS = ["low-rank-add", "low-rank-multiply"]


def joint(kind: str, name: str = "res-2", steps: int = 2, **options: Any) -> JointNetwork:
    base = models.build(name, (32, 32, 3), 4, Seed(0), width=8)
    net = JointNetwork(base, dict.fromkeys(base.layer_names, kind), **options)
    for step in range(1, steps):
        net.add_step(Seed(step))
    return net


def images() -> Tensor:
    return torch.rand(6, 3, 32, 32, generator=Seed(1).torch())


def adapter(net: JointNetwork, layer: str, step: int) -> LowRankAdapter:
    found = net.layers[layer].steps[step]  # type: ignore[union-attr, index]
    assert isinstance(found, LowRankAdapter)
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["conv-2", "dense-1", "res-2"])
def test_a_new_step_equals_the_one_before_and_all_its_factors_can_learn(kind: str, name: str) -> None:
    net, x = joint(kind, name, steps=1, rank=2), images()
    net.train()(x)  # statistics that are not the initial ones
    net.add_step(Seed(1))
    net.eval()
    torch.testing.assert_close(net(x, 1), net(x, 0))
    torch.manual_seed(0)
    with torch.no_grad():
        for weight in net.parameters_of(1):
            weight += 0.05 * torch.randn_like(weight)
    net.add_step(Seed(2))
    torch.testing.assert_close(net(x, 2), net(x, 1))
    assert not torch.allclose(net(x, 1), net(x, 0), atol=1e-3)

    optimizer = torch.optim.SGD(net.parameters_of(2), 0.1)
    for _ in range(2):  # one factor starts at zero, so the other learns from the second update on
        optimizer.zero_grad()
        net(x, 2).square().sum().backward()
        optimizer.step()
    assert all(weight.grad is not None and weight.grad.abs().sum() > 0 for weight in net.parameters_of(2))


@torch.no_grad()
@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_combined_per_kernel_position_over_all_steps(kind: str) -> None:
    net = joint(kind, "conv-2", steps=3, rank=2, init="reference")
    base = net.layers["layer1"].steps[0]  # type: ignore[union-attr, index]
    adapters = [adapter(net, "layer1", step) for step in (1, 2)]
    assert [tuple(adapters[0].outer[0].shape), tuple(adapters[0].inner[0].shape)] == [(3, 3, 16, 2), (3, 3, 2, 8)]
    got = adapted_weights(base, adapters, kind == "low-rank-multiply")["0.weight"]
    for row, column, o, i in [(0, 0, 0, 0), (0, 2, 5, 1), (2, 1, 15, 7)]:
        expected = base[0].weight[o, i, row, column].item()
        for each in adapters:
            outer, inner = each.outer[0][row, column, o], each.inner[0][row, column, :, i]
            change = (outer[0] * inner[0] + outer[1] * inner[1]).item()
            expected = expected * change if kind == "low-rank-multiply" else expected + change
        assert got[o, i, row, column].item() == pytest.approx(expected, rel=1e-4, abs=1e-6)

    x = torch.randn(2, 8, 8, 8)
    by_hand = nn.functional.conv2d(x, got, stride=2, padding=1)
    torch.testing.assert_close(net.layers["layer1"](x, 2, 1.0), adapters[1].template[1](by_hand), atol=1e-4, rtol=1e-4)


@torch.no_grad()
def test_the_head_has_the_bias_of_the_latest_step() -> None:
    net, features = joint("low-rank-add", steps=3), torch.randn(5, 64, 2, 2)
    before = net.layers["fc"](features, 2, 1.0)
    for step, value in ((1, 100.0), (2, 3.0)):
        adapter(net, "fc", step).template[2].bias += value  # type: ignore[index]
    torch.testing.assert_close(net.layers["fc"](features, 2, 1.0), before + 3)


@torch.no_grad()
def test_the_start_of_the_reference_is_uniform_and_changes_the_outputs() -> None:
    net = joint("low-rank-add", rank=2, init="reference")
    factors = adapter(net, "layer2", 1)
    numbers = torch.cat([factor.flatten() for factor in (*factors.outer, *factors.inner)])
    assert (numbers.min().item(), numbers.max().item()) == pytest.approx((-1.5, 1.5), abs=0.01)
    assert numbers.std().item() == pytest.approx(3 / 12**0.5, abs=0.02)
    assert not torch.allclose(net(images(), 1), net(images(), 0), atol=1e-2)
    assert torch.equal(net(images()), joint("low-rank-add", rank=2, init="reference")(images()))
    with pytest.raises(UserError, match="Did you mean 'reference'"):
        joint("low-rank-add", init="refrence")


@pytest.mark.parametrize("kind", KINDS)
def test_a_frozen_first_step_keeps_its_batch_norm_while_the_new_ones_moves(kind: str) -> None:
    net = joint(kind).train()
    net.freeze(before=1)
    before = {name: value.clone() for name, value in net.state_dict().items() if "running" in name}
    net(images()).sum().backward()
    for name, value in net.state_dict().items():
        if "running" in name:
            assert torch.equal(value, before[name]) == (".steps.0." in name), name
    assert all(weight.grad is None for weight in net.parameters_of(0))


def test_ranks_must_make_the_factors_smaller_than_the_weights() -> None:
    joint("low-rank-add", "conv-2", rank=5)  # 5 * (8 + 16) < 8 * 16
    with pytest.raises(UserError, match=r"rank 6 does not fit layer1: .* from 1 to 5"):
        joint("low-rank-add", "conv-2", rank=6)
    with pytest.raises(UserError, match="rank 0 does not fit layer1"):
        joint("low-rank-multiply", rank=0)
    with pytest.raises(UserError, match=r"rank 3 does not fit conv1: .* from 1 to 2"):
        joint("low-rank-add", rank={"conv1": 3})  # 3 * (3 + 8) is more than 3 * 8


def test_a_rank_for_blocks_is_capped_at_stem_and_head() -> None:
    net = joint("low-rank-add", "conv-2", rank=5)
    ranks = {name: adapter(net, name, 1).outer[0].shape[-1] for name in net.layer_names}
    assert ranks == {"conv1": 1, "layer1": 5, "layer2": 5, "fc": 3}  # 3 * (64 + 4) < 64 * 4 < 4 * (64 + 4)


def test_factors_are_fewer_than_the_weights_they_change() -> None:
    net = joint("low-rank-add", "conv-2", rank=1)
    factors = sum(p.numel() for p in (*adapter(net, "layer2", 1).outer, *adapter(net, "layer2", 1).inner))
    assert factors == 9 * (16 + 64)
    assert not any("weight" in name for name, _ in adapter(net, "layer2", 1).template[0].named_parameters())  # type: ignore[index]
