from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from driftline import models
from driftline.errors import UserError
from driftline.learners.fit_plan import Expansion
from driftline.learners.sequence.growth import expand
from driftline.models.block_networks.base import BlockNetwork, decayed_parameters, weight_parameters
from driftline.models.block_networks.joint import JointNetwork
from driftline.seeds import Seed

FAMILIES = ["conv-2", "dense-2", "res-2"]


def plain(name: str = "res-2", seed: int = 0) -> BlockNetwork:
    net: BlockNetwork = models.build(name, (32, 32, 3), 4, Seed(seed), width=4)
    return net


def joint(kind: str, name: str = "res-2", steps: int = 3, copy_previous: bool = False, **kinds: str) -> JointNetwork:
    base = plain(name)
    net = JointNetwork(base, dict.fromkeys(base.layer_names, kind) | kinds)
    for step in range(1, steps):
        net.add_step(Seed(step), copy_previous)
    return net


def images(n: int = 6) -> Tensor:
    return torch.rand(n, 3, 32, 32, generator=Seed(1).torch())


def part(net: JointNetwork, layer: str, step: int) -> Any:
    return net.layers[layer].steps[step]  # type: ignore[union-attr, index]


@torch.no_grad()
@pytest.mark.parametrize("name", FAMILIES)
def test_all_shared_is_the_plain_network_at_every_step(name: str) -> None:
    net, x = joint("shared", name), images()
    for step in (0, 1, 2, None):
        assert torch.equal(net(x, step), plain(name)(x))
    assert net.steps == 3
    sizes = [sum(weight.numel() for weight in one.parameters()) for one in (net, plain(name))]
    assert sizes[0] == sizes[1]
    assert net.parameters_of(2) == []


@torch.no_grad()
@pytest.mark.parametrize("name", FAMILIES)
def test_separate_steps_begin_at_random_or_as_copies(name: str) -> None:
    net, x = joint("separate", name), images()
    assert torch.equal(net(x, 0), plain(name)(x))
    assert torch.equal(net(x), net(x, 2))
    assert not torch.allclose(net(x, 1), net(x, 0), atol=1e-3)
    assert not torch.allclose(net(x, 2), net(x, 1), atol=1e-3)
    assert torch.equal(joint("separate", name)(x), net(x))  # from the seed alone

    net.train()(x, 2)  # statistics differ from step to step and are copied too
    net.eval().add_step(Seed(9), copy_previous=True)
    assert torch.equal(net(x, 3), net(x, 2))
    part(net, "fc", 3)[-1].bias += 1
    torch.testing.assert_close(net(x, 3), net(x, 2) + 1)


def test_a_copy_of_a_frozen_step_can_be_trained() -> None:
    net = joint("separate", steps=2).train()
    net.freeze(before=2)
    net.add_step(Seed(2), copy_previous=True)
    assert all(weight.requires_grad for weight in net.parameters_of(2))
    assert not any(weight.requires_grad for step in (0, 1) for weight in net.parameters_of(step))
    assert part(net, "conv1", 2)[1].training
    assert not part(net, "conv1", 1)[1].training


@torch.no_grad()
def test_side_modules_are_added_to_the_block_and_nothing_bends_the_sum() -> None:
    net = joint("side-1", conv1="shared", fc="shared")
    x, layer = torch.randn(3, 4, 8, 8), net.layers["layer1"]
    base = part(net, "layer1", 0)(x)
    sides = []
    for step in (1, 2):
        convolution, norm = part(net, "layer1", step)
        norm.running_var.fill_(step + 1.0)
        scale = (norm.running_var + norm.eps).rsqrt()
        sides.append(functional.conv2d(x, convolution.weight, stride=2, padding=1) * scale[:, None, None])
    torch.testing.assert_close(layer(x, 0, 1.0), base)
    torch.testing.assert_close(layer(x, 1, 1.0), base + sides[0])
    torch.testing.assert_close(layer(x, 2, 1.0), base + sides[0] + sides[1])
    assert (base >= 0).all()
    assert (layer(x, 2, 1.0) < 0).any(), "a ReLU after the sum would hide this"


@torch.no_grad()
@pytest.mark.parametrize("kind", ["side-1", "side-block"])
def test_side_stems_and_heads_are_full_modules(kind: str) -> None:
    net, x = joint(kind), images()
    stems = [part(net, "conv1", step)(x) for step in range(3)]
    torch.testing.assert_close(net.layers["conv1"](x, 2, 1.0), stems[0] + stems[1] + stems[2])
    assert all((stem >= 0).all() for stem in stems)
    features = torch.randn(5, 32, 2, 2)
    logits = [part(net, "fc", step)[-1](features.mean((2, 3))) for step in range(3)]
    torch.testing.assert_close(net.layers["fc"](features, 1, 1.0), logits[0] + logits[1])
    torch.testing.assert_close(net.layers["fc"](features, 2, 1.0), sum(logits))


@pytest.mark.parametrize("name", ["dense-2", "res-2"])
def test_a_side_block_is_built_like_the_block(name: str) -> None:
    net = joint("side-block", name)
    for layer in ("layer1", "layer2"):
        shapes = [[tuple(w.shape) for w in part(net, layer, step).parameters()] for step in range(3)]
        assert shapes[0] == shapes[1] == shapes[2]
        first, second = (next(part(net, layer, step).parameters()) for step in (1, 2))
        assert first.ndim == 1 or not torch.equal(first, second)
    small = joint("side-1", name)
    assert [tuple(w.shape[2:]) for w in weight_parameters(part(small, "layer1", 1)).values()] == [(3, 3)]


def test_conv_networks_have_one_side_module_and_the_error_explains_the_dash() -> None:
    net = joint("side-1", "conv-2")
    assert str(part(net, "layer1", 1)) == str(part(net, "layer1", 0))
    with pytest.raises(UserError, match="a dash under '-B'"):
        joint("side-block", "conv-2")


@torch.no_grad()
def test_the_scale_leads_from_the_previous_step_to_the_last() -> None:
    net, x = joint("side-block"), images()
    before, after = net(x, 1), net(x, 2)
    net.side_scale = 0.0
    torch.testing.assert_close(net(x), before)
    torch.testing.assert_close(net(x, 1), before)
    assert not torch.allclose(before, after, atol=1e-3)
    heads = joint("shared", fc="side-1")
    ends = heads(x, 1), heads(x, 2)
    heads.side_scale = 0.25
    torch.testing.assert_close(heads(x), 0.75 * ends[0] + 0.25 * ends[1])
    assert torch.equal(heads(x, 1), ends[0])


@pytest.mark.parametrize("kind", ["separate", "shared", "side-1", "side-block", "low-rank-add"])
def test_every_parameter_belongs_to_one_step(kind: str) -> None:
    net = joint(kind)
    owned = [id(weight) for step in range(3) for weight in net.parameters_of(step)]
    assert sorted(owned) == sorted(id(weight) for weight in net.parameters())
    assert len(net.parameters_of(0)) == len(list(plain().parameters()))


def test_only_the_last_step_learns_and_frozen_statistics_stand_still() -> None:
    net = joint("side-1", conv1="separate", fc="separate").train()
    net.freeze(before=2)
    before = {name: value.clone() for name, value in net.state_dict().items() if "running" in name}
    net(images()).sum().backward()
    for name, value in net.state_dict().items():
        if "running" in name:
            assert torch.equal(value, before[name]) == (".steps.2." not in name), name
    moved = {id(weight) for weight in net.parameters() if weight.grad is not None}
    assert moved == {id(weight) for weight in net.parameters_of(2)}
    assert {id(weight) for weight in decayed_parameters(net)} < moved

    net.freeze(before=2, moving_statistics=True)
    net(images())
    now = net.state_dict()
    assert not torch.equal(
        now["layers.layer1.steps.0.0.first.1.running_mean"], before["layers.layer1.steps.0.0.first.1.running_mean"]
    )


@pytest.mark.parametrize("name", FAMILIES)
def test_adjacent_weights_are_those_of_separate_layers_without_batch_norm(name: str) -> None:
    net = joint("separate", name)
    pairs = net.adjacent_pairs(2)
    assert [id(new) for new, _ in pairs] == [
        id(w) for w in net.parameters_of(2) if id(w) in set(map(id, decayed_parameters(net)))
    ]
    assert [id(old) for _, old in pairs] == [id(new) for new, _ in net.adjacent_pairs(1)]
    assert net.adjacent_pairs(0) == []
    assert len(pairs) == len(weight_parameters(plain(name)))
    assert all(new.shape == old.shape for new, old in pairs)

    ends = joint("side-1", name, conv1="separate", fc="separate").adjacent_pairs(1)
    assert ends[0][0].shape == (4, 3, 7, 7)
    assert len(ends) == 3


@torch.no_grad()
@pytest.mark.parametrize("kind", ["separate", "shared", "side-1", "side-block", "low-rank-add", "low-rank-multiply"])
def test_copies_and_saved_states_are_the_same_network(kind: str) -> None:
    net, x = joint(kind), images()
    net.train()(x)
    net.eval()
    for weight in net.parameters_of(2):
        weight += 0.1
    twin = joint(kind)
    assert kind == "shared" or not torch.allclose(twin(x), net(x), atol=1e-3)
    twin.load_state_dict(net.state_dict())
    duplicate = copy.deepcopy(net)
    for step in range(3):
        assert torch.equal(twin(x, step), net(x, step))
        assert torch.equal(duplicate(x, step), net(x, step))
    duplicate.add_step(Seed(5))
    assert (duplicate.steps, net.steps) == (4, 3)


def test_dropout_is_that_of_the_plain_network() -> None:
    net, base, x = joint("shared", "conv-2"), plain("conv-2"), images()
    net.dropout = base.dropout = 0.5
    outputs = []
    for model in (net, base):
        torch.manual_seed(0)
        outputs.append(model.train()(x))
    assert torch.equal(*outputs)
    base.dropout = 0.0
    assert not torch.allclose(base(x), outputs[0], atol=1e-3)


def test_mistakes_are_named() -> None:
    base = plain("conv-2")
    with pytest.raises(UserError, match="no kind is given for layer2, fc"):
        JointNetwork(base, {"conv1": "shared", "layer1": "shared"})
    with pytest.raises(UserError, match="Did you mean 'shared'"):
        joint("share")
    with pytest.raises(UserError, match="no layer 'layer3'"):
        joint("shared", "conv-2", layer3="separate")
    with pytest.raises(ValueError, match="steps 0 to 2"):
        joint("shared")(images(), 3)


@torch.no_grad()
def test_a_plan_of_growth_is_followed_step_by_step() -> None:
    def plan(steps: int) -> Expansion:
        return Expansion("side-1", "separate", steps, copy=True, shared=("layer2",))

    at_once, x = expand(plain(), plan(3), Seed(7)), images()
    assert at_once.kinds == {"conv1": "separate", "layer1": "side-1", "layer2": "shared", "fc": "separate"}
    one_by_one = expand(expand(expand(plain(), plan(1), Seed(7)), plan(2), Seed(7)), plan(3), Seed(7))
    assert torch.equal(at_once(x), one_by_one(x))
    assert not torch.equal(part(at_once, "layer1", 1)[0].weight, part(at_once, "layer1", 2)[0].weight)
    assert isinstance(part(at_once, "layer2", 2), nn.Identity)
