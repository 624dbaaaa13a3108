"""Wild-Time's Yearbook network."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from driftline import models
from driftline.errors import UserError
from driftline.seeds import Seed


def parameters(model: nn.Module) -> int:
    return sum(weight.numel() for weight in model.parameters())


def test_the_yearbook_network_is_wild_times() -> None:
    model = models.build("yearbook-cnn", (32, 32, 1), 2)
    assert parameters(model) == 28_962
    kinds = [type(layer).__name__ for layer in model.features]
    assert kinds == ["Conv2d", "BatchNorm2d", "ReLU", "MaxPool2d"] * 4
    assert [tuple(c.weight.shape) for c in model.features if isinstance(c, nn.Conv2d)] == [
        (32, 3, 3, 3),
        *[(32, 32, 3, 3)] * 3,
    ]
    sizes = []
    x = torch.zeros(1, 3, 32, 32)
    for layer in model.features:
        x = layer(x)
        sizes += [x.shape[-1]] if isinstance(layer, nn.MaxPool2d) else []
    assert sizes == [16, 8, 4, 2]


def test_grey_is_three_equal_channels_and_the_head_sees_the_mean_over_pixels() -> None:
    model = models.build("yearbook-cnn", (32, 32, 1), 2)
    x = torch.rand(2, 1, 32, 32, generator=Seed(0).torch())
    np.testing.assert_allclose(model(x).detach(), model(x.repeat(1, 3, 1, 1)).detach(), atol=1e-6)
    seen = model.features(x.repeat(1, 3, 1, 1)).flatten(2).mean(2)
    np.testing.assert_allclose(model(x).detach(), model.head(seen).detach(), atol=1e-6)


@pytest.mark.parametrize("shape", [(8, 8, 1), (32, 32, 2), (64,)])
def test_the_yearbook_network_refuses_other_inputs(shape: tuple[int, ...]) -> None:
    with pytest.raises(UserError, match="at least 16 x 16"):
        models.build("yearbook-cnn", shape, 2)
