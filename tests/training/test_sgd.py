"""SGD: the same bits as torch's."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import nn

from driftline.training.optimizers import new_optimizer
from driftline.training.sgd import SGD

from .test_adam import descend, network


def torchs(model: nn.Module, **settings: Any) -> torch.optim.SGD:
    return torch.optim.SGD(model.parameters(), lr=0.05, foreach=False, **settings)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"momentum": 0.9},
        {"weight_decay": 0.1},
        {"momentum": 0.9, "weight_decay": 0.1},
        {"momentum": 0.9, "weight_decay": 0.1, "nesterov": True},
    ],
)
def test_it_is_torchs_to_the_bit(settings: dict[str, Any]) -> None:
    """Also after a restart, and where a weight has its first gradient later than the others."""
    ours, plain = network(), network()
    optimizer, expected = new_optimizer("sgd", ours.parameters(), lr=0.05, **settings), torchs(plain, **settings)
    assert type(optimizer) is SGD
    for model in (ours, plain):
        model[4].weight.requires_grad_(False)
    assert torch.equal(descend(ours, optimizer), descend(plain, expected))
    for model in (ours, plain):
        model[4].weight.requires_grad_(True)
    again = new_optimizer("sgd", ours.parameters(), lr=0.3, **settings)
    again.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    assert torch.equal(descend(ours, again, start=1), descend(plain, expected, start=1))
    assert [len(state) for state in again.state.values()] == [len(state) for state in expected.state.values()]


@pytest.mark.parametrize("scale", [1.0, 1e-20, 1e-38])
def test_it_is_torchs_to_the_bit_for_weights_of_any_length(scale: float) -> None:
    """Also with numbers so small that torch's fused step might treat them in another way."""
    settings = {"lr": 0.05, "momentum": 0.9, "weight_decay": 0.1}
    random = torch.Generator().manual_seed(0)
    start = [scale * torch.randn(n, generator=random) for n in (*range(1, 40), 4096)]
    ours, plain = ([nn.Parameter(weight.clone()) for weight in start] for _ in range(2))
    optimizer, expected = new_optimizer("sgd", ours, **settings), torch.optim.SGD(plain, foreach=False, **settings)
    for _ in range(6):
        for one, other in zip(ours, plain, strict=True):
            one.grad = scale * torch.randn(len(one), generator=random)
            other.grad = one.grad.clone()
        optimizer.step()
        expected.step()
    assert all(torch.equal(one, other) for one, other in zip(ours, plain, strict=True))


def test_weights_in_another_memory_format_take_the_plain_step() -> None:
    """torch's fused step reads weights, gradients and moments in the order of memory, which must be one."""
    settings = {"lr": 0.05, "momentum": 0.9}
    start, gradient = torch.randn(4, 4, 2, 2), torch.randn(4, 4, 2, 2)
    mixed, plain = nn.Parameter(start.clone().to(memory_format=torch.channels_last)), nn.Parameter(start.clone())
    optimizer, expected = new_optimizer("sgd", [mixed], **settings), torch.optim.SGD([plain], foreach=False, **settings)
    for _ in range(3):
        mixed.grad, plain.grad = gradient.clone(), gradient.clone()
        optimizer.step()
        expected.step()
    assert torch.equal(mixed, plain)
