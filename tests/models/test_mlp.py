"""The linear model and the multi-layer perceptron."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from driftline import models
from driftline.seeds import Seed
from driftline.testing import digest


def parameters(model: nn.Module) -> int:
    return sum(weight.numel() for weight in model.parameters())


def test_linear_and_mlp_have_the_sizes_they_say() -> None:
    assert parameters(models.build("linear", (8, 8, 1), 10)) == 64 * 10 + 10
    mlp = models.build("mlp", (8, 8, 1), 10, width=16, depth=3)
    assert parameters(mlp) == (64 * 16 + 16) + 2 * (16 * 16 + 16) + (16 * 10 + 10)
    assert sum(isinstance(layer, nn.ReLU) for layer in mlp) == 3


@pytest.mark.parametrize("name", ["linear", "mlp", "yearbook-cnn"])
def test_initial_weights_come_from_the_seed_alone(name: str) -> None:
    def made(seed: int, noise: int) -> str:
        with torch.random.fork_rng():
            torch.manual_seed(noise)
            before = torch.get_rng_state()
            model = models.build(name, (16, 16, 1), 3, Seed(seed))
            assert torch.equal(torch.get_rng_state(), before)
        assert not model.training
        return digest(dict(model.state_dict()))

    assert made(0, 1) == made(0, 2)
    assert made(0, 1) != made(1, 1)
