"""Which parts of a network rest while others are trained."""

from __future__ import annotations

from torch import nn

from driftline.training.freezing import eval_frozen, freeze_except, last_layers


def network() -> nn.Sequential:
    first = nn.Sequential(nn.Dropout(), nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Dropout())
    second = nn.Sequential(nn.Conv2d(2, 2, 3), nn.BatchNorm2d(2), nn.Dropout())
    return nn.Sequential(first, second, nn.Flatten(), nn.Linear(2, 2))


def modes(net: nn.Module) -> dict[str, bool]:
    return {name: module.training for name, module in net.named_modules()}


def test_what_has_frozen_weights_or_comes_before_trained_ones_rests() -> None:
    net = network().train()
    freeze_except(net, last_layers(net, 2))
    eval_frozen(net)
    training = {name for name, on in modes(net).items() if on}
    assert training == {"1", "1.0", "1.1", "1.2", "2", "3"}


def test_with_one_layer_only_that_one_trains() -> None:
    net = network().train()
    weights = freeze_except(net, last_layers(net, 1))
    assert [tuple(weight.shape) for weight in weights] == [(2, 2), (2,)]
    eval_frozen(net)
    assert {name for name, on in modes(net).items() if on} == {"3"}


def test_nothing_rests_where_nothing_is_frozen() -> None:
    net = network().train()
    freeze_except(net, last_layers(net, 3))
    eval_frozen(net)
    assert all(modes(net).values())
