from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from driftline import models
from driftline.errors import UserError
from driftline.models.preprocessing import Standardize, to_float_batch, to_tensor
from driftline.seeds import Seed
from driftline.testing import digest


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


def test_images_become_fractions_with_channels_first() -> None:
    images = torch.arange(2 * 3 * 4 * 2, dtype=torch.uint8).reshape(2, 3, 4, 2)
    x = to_float_batch(images)
    assert (x.shape, x.dtype) == ((2, 2, 3, 4), torch.float32)
    assert x[1, 0, 2, 3].item() == pytest.approx(images[1, 2, 3, 0].item() / 255)
    assert to_float_batch(torch.tensor([[255]], dtype=torch.uint8)).item() == 255  # a table of bytes is not a picture
    assert to_float_batch(torch.tensor([[1.5]], dtype=torch.float64)).dtype == torch.float32
    floats = torch.rand(1, 2, 3, 3)
    assert torch.equal(to_float_batch(floats), floats)


def test_tensors_share_memory_where_they_can() -> None:
    x = np.zeros((2, 2), np.float32)
    to_tensor(x)[0, 0] = 1
    assert x[0, 0] == 1
    assert to_tensor(x.T[::-1]).shape == (2, 2)


def test_a_feature_that_never_varied_keeps_its_scale() -> None:
    layer = Standardize(2)
    layer.fit(torch.tensor([[1.0, 5.0], [3.0, 5.0]]))
    assert layer.mean.tolist() == [2, 5]
    assert layer.scale.tolist() == [1, 1]
    assert layer(torch.tensor([[3.0, 6.0]])).tolist() == [[1, 1]]
    layer.fit(torch.zeros(2, 2))
    assert layer.mean.tolist() == [2, 5]
