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
