from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from driftline import models
from driftline.errors import UserError
from driftline.models.block_networks.base import (
    BlockNetwork,
    decayed_parameters,
    freeze,
    train_only_layers,
    weight_parameters,
)
from driftline.models.block_networks.dense import DenseFamily, DenseLayer
from driftline.models.block_networks.residual import ResidualUnit
from driftline.seeds import Seed
from driftline.testing import digest
from driftline.training.fit import fit_input_scaling


def parameter_count(net: nn.Module) -> int:
    return sum(parameter.numel() for parameter in net.parameters())


def paper_parameter_count(net: nn.Module) -> int:
    """Return the number that Table 7 of the paper rounds: without batch norm and residual shortcuts."""
    return sum(weight.numel() for name, weight in weight_parameters(net).items() if "shortcut" not in name)


COUNTS = {  # as printed, rounded, in Table 7; and all of them
    "conv-1": (309_450, 310_602),
    "conv-2": (678_090, 679_498),
    "conv-3": (1_562_826, 1_564_746),
    "conv-4": (1_599_690, 1_601_738),
    "dense-1": (1_227_594, 1_242_698),
    "dense-2": (1_723_850, 1_744_906),
    "dense-3": (3_027_658, 3_064_458),
    "dense-4": (6_880_458, 6_964_106),
    "res-1": (7_387_338, 7_425_354),
    "res-2": (8_198_346, 8_278_602),
    "res-3": (10_852_554, 11_033_674),
    "res-4": (11_000_010, 11_181_642),
}
FEATURES = {"dense-1": 576, "dense-2": 640, "dense-3": 768, "dense-4": 1024}
NAMES = list(COUNTS)


def small(name: str, outputs: int = 4, side: int = 32, seed: int = 0) -> BlockNetwork:
    """A narrow network whose batch norm is anything but the identity."""
    net: BlockNetwork = models.build(name, (side, side, 3), outputs, Seed(seed), width=4)
    random = Seed(seed).child("norm").torch()
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.weight.data.uniform_(0.5, 1.5, generator=random)
            module.bias.data.uniform_(-0.5, 0.5, generator=random)
            module.running_mean.uniform_(-0.5, 0.5, generator=random)  # type: ignore[union-attr]
            module.running_var.uniform_(0.5, 1.5, generator=random)  # type: ignore[union-attr]
    return net


def images(n: int = 6, side: int = 32, channels: int = 3) -> torch.Tensor:
    return torch.rand(n, channels, side, side, generator=Seed(1).torch())


def statistics(net: nn.Module) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in net.state_dict().items() if "running" in name}


@pytest.mark.parametrize("name", NAMES)
def test_parameters_are_counted_as_in_the_paper_and_truly(name: str) -> None:
    more = 10 * (FEATURES.get(name, 512) + 1)
    for outputs, extra in ((10, 0), (20, more)):
        with torch.device("meta"):  # sizes alone
            net = models.build(name, outputs=outputs)
        assert (paper_parameter_count(net) - extra, parameter_count(net) - extra) == COUNTS[name]


def test_res_4_is_resnet_18_and_dense_4_is_densenet_121() -> None:
    with torch.device("meta"):
        counts = [parameter_count(models.build(name, outputs=1000)) for name in ("res-4", "resnet18", "dense-4")]
        kernels = [tuple(weight.shape) for weight in weight_parameters(models.build("res-4").layers["layer2"]).values()]
    assert counts == [11_689_512, 11_689_512, 7_978_856]
    assert kernels == [(128, 64, 3, 3), (128, 128, 3, 3), (128, 64, 1, 1), *[(128, 128, 3, 3)] * 2]


@pytest.mark.parametrize("name", NAMES)
def test_width_scales_every_channel(name: str) -> None:
    with torch.device("meta"):
        wide, narrow = models.build(name), models.build(name, width=16)
    assert weight_parameters(wide)
    for (path, big), little in zip(weight_parameters(wide).items(), weight_parameters(narrow).values(), strict=True):
        ratio = 1 if path.endswith("bias") else 4 if path.startswith(("layers.conv1", "layers.fc")) else 16
        assert big.numel() == little.numel() * ratio, path  # pixels and classes do not scale


@pytest.mark.parametrize("name", NAMES)
def test_blocks_see_the_sizes_of_the_paper(name: str) -> None:
    family, blocks = name.split("-")
    dense = {"1": [8, 8], "2": [8, 4, 4], "3": [8, 4, 2, 2], "4": [8, 4, 2, 1, 1]}
    other = {"1": [8, 4], "2": [8, 4, 2], "3": [8, 4, 2, 1], "4": [8, 8, 4, 2, 1]}
    net, x, seen = small(name), images(), []
    for layer in list(net.layers.values())[:-1]:
        x = layer(x)
        seen.append(x.shape[-1])
    assert seen == (dense if family == "dense" else other)[blocks]
    assert net.layer_names == list(net.layers) == ["conv1", *[f"layer{i}" for i in range(1, len(seen))], "fc"]


def bend(net: BlockNetwork) -> float:
    """How far the blocks are from f(a + b) - f(a) - f(b) + f(0) = 0, which holds for what is linear plus a shift."""

    def blocks(x: torch.Tensor) -> torch.Tensor:
        for name in net.layer_names[1:-1]:
            x = net.layers[name](x)
        return x

    a, b = torch.randn(2, 3, 4, 8, 8, generator=Seed(2).torch())
    return float((blocks(a + b) - blocks(a) - blocks(b) + blocks(0 * a)).abs().max())


@torch.no_grad()
def test_no_relu_follows_a_conv_block() -> None:
    net = small("conv-3")
    assert bend(net) < 1e-4
    net.layers["layer1"].append(nn.ReLU())  # type: ignore[operator]  # the natural mistake
    assert bend(net) > 1e-2
    assert bend(small("res-3")) > 1e-2


@torch.no_grad()
def test_the_stem_is_convolution_norm_relu_and_pooling() -> None:
    stem, x = small("conv-1").layers["conv1"], images()
    convolution, norm = stem[0], stem[1]  # type: ignore[index]
    bent = norm(functional.conv2d(x, convolution.weight, stride=2, padding=3)).clamp(min=0)
    torch.testing.assert_close(stem(x), functional.max_pool2d(bent, 3, 2, 1))


@torch.no_grad()
def test_a_residual_unit_adds_its_shortcut_before_the_last_relu() -> None:
    net = small("res-2")
    inputs = (torch.randn(3, 4, 6, 6), torch.randn(3, 8, 5, 5))
    for unit, x in zip(net.layers["layer1"].children(), inputs, strict=True):
        assert isinstance(unit, ResidualUnit)
        (one, norm1), (two, norm2) = unit.first, unit.second
        inner = norm1(functional.conv2d(x, one.weight, stride=one.stride, padding=1)).clamp(min=0)
        inner = norm2(functional.conv2d(inner, two.weight, padding=1))
        around = x
        if not isinstance(unit.shortcut, nn.Identity):
            mixed = torch.einsum("oi,nihw->nohw", unit.shortcut[0].weight[:, :, 0, 0], x[:, :, ::2, ::2])
            around = unit.shortcut[1](mixed)
        torch.testing.assert_close(unit(x), (inner + around).clamp(min=0), atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_a_dense_block_keeps_what_it_saw_and_ends_with_a_halving_transition() -> None:
    net = small("dense-2")
    block, x = net.layers["layer1"], torch.randn(3, 4, 8, 8)
    layers, (norm, _, squeeze, _) = list(block.children())[:6], list(block.children())[6:]
    seen = x
    for layer in layers:
        assert isinstance(layer, DenseLayer)
        norm1, _, one, norm2, _, three = layer.new
        new = functional.conv2d(norm1(seen).clamp(min=0), one.weight)
        new = functional.conv2d(norm2(new).clamp(min=0), three.weight, padding=1)
        seen = torch.cat([seen, new], 1)
    assert (one.out_channels, three.out_channels, seen.shape[1]) == (8, 2, 16)
    expected = functional.avg_pool2d(functional.conv2d(norm(seen).clamp(min=0), squeeze.weight), 2)
    torch.testing.assert_close(block(x), expected, atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_heads_average_pixels_and_only_that_of_dense_bends() -> None:
    for name, width in (("conv-1", 32), ("res-1", 32), ("dense-1", 36)):
        head, x = small(name).layers["fc"], torch.randn(3, width, 2, 2)
        *before, _, _, linear = head.children()
        y = before[0](x).clamp(min=0) if before else x
        assert len(before) == (2 if name == "dense-1" else 0)
        torch.testing.assert_close(head(x), linear(y.mean((2, 3))))


@torch.no_grad()
def test_images_are_standardised_by_channel_once_and_grey_is_three_equal_channels() -> None:
    bytes_ = (torch.rand(40, 32, 32, 3, generator=Seed(3).torch()) * torch.tensor([255, 100, 10])).to(torch.uint8)
    net = small("conv-2")
    fit_input_scaling(net, torch.as_tensor(bytes_))
    expected = bytes_.numpy().astype(np.float64).reshape(-1, 3) / 255
    np.testing.assert_allclose(net.standardize.mean, expected.mean(0), atol=1e-6)
    np.testing.assert_allclose(net.standardize.scale, expected.std(0), atol=1e-6)
    fit_input_scaling(net, torch.zeros_like(bytes_))
    np.testing.assert_allclose(net.standardize.mean, expected.mean(0), atol=1e-6)

    x = images()
    standard = torch.stack([(x[:, c] - expected[:, c].mean()) / expected[:, c].std() for c in range(3)], 1).float()
    for layer in net.layers.values():
        standard = layer(standard)
    torch.testing.assert_close(net(x), standard, atol=1e-4, rtol=1e-4)

    grey = models.build("conv-2", (32, 32, 1), 4, width=4)
    colour = models.build("conv-2", (32, 32, 3), 4, width=4)
    torch.testing.assert_close(grey(x[:, :1]), colour(x[:, :1].repeat(1, 3, 1, 1)))
    assert grey.standardize.mean.shape == (1,)


@pytest.mark.parametrize("shape", [(7, 32, 3), (32, 32, 2), (3, 32, 32), (64,)])
def test_other_inputs_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(UserError, match="at least 8 x 8"):
        models.build("conv-2", shape, 2)


@pytest.mark.parametrize(("name", "width", "why"), [("res-1", 0, "at least 1"), ("dense-1", 5, "even")])
def test_impossible_widths_are_refused(name: str, width: int, why: str) -> None:
    with pytest.raises(UserError, match=why):
        models.build(name, width=width)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("side", [8, 27])
def test_any_size_from_8_pixels_and_a_side_module_fits_its_block(name: str, side: int) -> None:
    net, x = small(name, side=side), images(2, side)
    assert torch.isfinite(net(x)).all()
    x = net.layers["conv1"](x)
    for number in range(1, net.family.depth + 1):
        y = net.layers[f"layer{number}"](x)
        assert net.family.one_layer_side(number)(x).shape == y.shape
        x = y


def test_one_layer_sides_have_the_sizes_of_the_reference() -> None:
    with torch.device("meta"):
        sides = [paper_parameter_count(DenseFamily(depth, 64, 10).one_layer_side(depth)) for depth in (3, 4)]
        blocks = [paper_parameter_count(DenseFamily(depth, 64, 10).block(depth)) for depth in (3, 4)]
    assert (sides, blocks) == ([1_769_472, 4_718_592], [1_605_632, 2_129_920])


@pytest.mark.parametrize("name", ["conv-2", "dense-1", "res-1"])
def test_initial_weights_come_from_the_seed_alone(name: str) -> None:
    def made(seed: int, noise: int) -> str:
        with torch.random.fork_rng():
            torch.manual_seed(noise)
            return digest(dict(models.build(name, (32, 32, 3), 4, Seed(seed), width=4).state_dict()))

    assert made(0, 1) == made(0, 2)
    assert made(0, 1) != made(1, 1)


@torch.no_grad()
def test_dropout_drops_single_numbers_in_training_after_all_layers_but_the_last() -> None:
    net = small("conv-2", outputs=50)
    net.dropout = 0.4
    plain = copy.deepcopy(net)
    plain.dropout = 0.0
    x = images(40)
    torch.testing.assert_close(net(x), plain(x), atol=0, rtol=0)

    kept: dict[str, torch.Tensor] = {}
    for name in ("layer1", "layer2", "fc"):
        net.layers[name].register_forward_pre_hook(lambda _, args, name=name: kept.update({name: args[0]}))
    freeze(net, [net])
    torch.manual_seed(0)
    logits = net.train()(x)
    assert not (logits == 0).any()
    for name in ("layer2", "fc"):  # numbers after batch norm are never zero by themselves
        assert (kept[name] == 0).double().mean().item() == pytest.approx(0.4, abs=0.02)
        by_map = (kept[name] == 0).flatten(2).double().mean(2)
        assert ((by_map > 0) & (by_map < 1)).double().mean() > 0.5, "whole channels must not be dropped"
    stem = plain.layers["conv1"](plain.standardize(x))
    survived = kept["layer1"] != 0
    torch.testing.assert_close(kept["layer1"][survived], stem[survived] / 0.6)
    assert "dropout" not in " ".join(net.state_dict())


def test_batch_norm_of_frozen_layers_stands_still() -> None:
    net = small("res-2")
    before = statistics(net)
    train_only_layers(net, ["layer2", "fc"])
    net.train()
    net(images()).sum().backward()
    for name, now in statistics(net).items():
        assert torch.equal(now, before[name]) == ("layer2" not in name), name
    for name, weight in net.named_parameters():
        assert (weight.grad is not None) == name.startswith(("layers.layer2", "layers.fc")), name
    still, x = net.layers["conv1"], images()
    torch.testing.assert_close(still(x), copy.deepcopy(still).eval()(x), atol=0, rtol=0)

    train_only_layers(net, ["fc"], moving_statistics=True)  # as in the reference
    net(x)
    assert not any(torch.equal(now, before[name]) for name, now in statistics(net).items())


def test_freezing_takes_hold_at_once_and_ends_with_the_next_choice() -> None:
    net = small("conv-2").train()
    freeze(net, [net.layers["layer1"]])
    norm = net.layers["layer1"][1]  # type: ignore[index]
    assert (norm.training, net.layers["layer2"][1].training, net.training) == (False, True, True)  # type: ignore[index]
    train_only_layers(net, net.layer_names)
    assert norm.training
    assert all(weight.requires_grad for weight in net.parameters())
    with pytest.raises(UserError, match="Did you mean 'layer1'"):
        train_only_layers(net, ["layer11"])


@pytest.mark.parametrize("name", ["conv-2", "dense-2", "res-2"])
def test_weight_decay_covers_weights_and_the_heads_bias(name: str) -> None:
    net = small(name)
    covered = {id(weight) for weight in decayed_parameters(net)}
    for path, module in net.named_modules():
        for key, weight in module.named_parameters(recurse=False):
            assert (id(weight) in covered) == isinstance(module, nn.Conv2d | nn.Linear), (path, key)
    train_only_layers(net, ["fc"])
    assert [tuple(weight.shape) for weight in decayed_parameters(net)] == [(4, net.family.sizes(2)[1]), (4,)]


def test_no_network_strides_in_a_1x1_convolution() -> None:
    """Torch 2.13 corrupts memory in the backward pass of one with channels last and fewer than 8 channels."""
    found = 0
    for name in ("conv-4", "dense-4", "res-4"):
        net = models.build(name, (32, 32, 3), 10, Seed(0), width=4)
        for part in net.modules():
            if isinstance(part, nn.Conv2d) and part.kernel_size == (1, 1):
                assert part.stride == (1, 1), name
                found += 1
    assert found


def test_taking_every_second_pixel_first_is_a_strided_1x1_convolution() -> None:
    unit = ResidualUnit(8, 16, 2).eval()
    x = torch.rand(2, 8, 8, 8, generator=Seed(0).torch())
    with torch.no_grad():
        strided = nn.functional.conv2d(x, unit.shortcut[0].weight, stride=2)  # type: ignore[index, union-attr]
        inner = unit.second(unit.first(x).relu())
        expected = (inner + unit.shortcut[1](strided)).relu()  # type: ignore[index, union-attr]
        torch.testing.assert_close(unit(x), expected)
