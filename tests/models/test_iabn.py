"""Instance-aware batch norm: the definition, and training with it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from driftline import models
from driftline.errors import UserError
from driftline.learners.supervised.ft import FineTune
from driftline.models.iabn import InstanceAwareBatchNorm
from driftline.seeds import Seed
from driftline.testing.fixtures import SHAPE, TASK, samples


def image(mean: float, variance: float) -> Tensor:
    """64 positions with this mean and unbiased variance."""
    x = torch.randn(64, generator=torch.Generator().manual_seed(0))
    x = (x - x.mean()) / x.std()
    return (mean + variance**0.5 * x).view(1, 1, 8, 8)


def test_the_worked_example() -> None:
    layer = InstanceAwareBatchNorm(nn.BatchNorm2d(1).eval(), 4).requires_grad_(False)
    near, far = image(0.3, 1.2), image(1, 2.5)  # the bounds: .5 and .7127
    torch.testing.assert_close(layer(near), near / (1 + 1e-5) ** 0.5)  # plain batch norm
    torch.testing.assert_close(layer(far), (far - 0.5) / (1.7873 + 1e-5) ** 0.5, atol=1e-4, rtol=0)
    hard = (far - 1) / 2.5**0.5  # its own statistics, because they are outside
    assert float((layer(far) - hard).abs().max()) > 0.2


def test_bounds_have_the_same_small_number_as_the_normalization() -> None:
    """Without it, a layer whose running variance is almost 0 would follow every image."""
    plain = nn.BatchNorm2d(1, eps=0.5).eval()
    plain.running_var.fill_(0.5)
    near = image(0.45, 1.1)  # the bounds: 4 sqrt(1 / 64) = .5 and 4 sqrt(2 / 63) = .7127, not .35 and .36
    torch.testing.assert_close(InstanceAwareBatchNorm(plain, 4).requires_grad_(False)(near), near)


def test_training_uses_and_keeps_statistics_of_the_batch() -> None:
    plain, layer = nn.BatchNorm2d(1), InstanceAwareBatchNorm(nn.BatchNorm2d(1), 4)
    x = torch.cat([image(0, 1), image(3, 1)])
    mean, variance = x.mean().item(), x.var().item()
    plain(x), layer(x)
    for name, buffer in plain.named_buffers():
        torch.testing.assert_close(dict(layer.named_buffers())[name], buffer)
    limit = 4 * ((variance + 1e-5) / 64) ** 0.5
    means = [mean + np.sign(own - mean) * max(abs(own - mean) - limit, 0) for own in (0.0, 3.0)]
    low = variance + min(0.0, 1 - variance + 4 * (variance + 1e-5) * (2 / 63) ** 0.5)
    expected = torch.stack([(x[k] - means[k]) / (low + 1e-5) ** 0.5 for k in (0, 1)])
    torch.testing.assert_close(layer(x), expected, rtol=1e-4, atol=1e-5)
    assert means[0] < mean < means[1]


def test_one_position_is_batch_norm_and_without_running_statistics_the_batch_counts() -> None:
    layer, x = InstanceAwareBatchNorm(nn.BatchNorm1d(2).eval(), 4), torch.tensor([[1.0, 2.0], [3.0, 6.0]])
    torch.testing.assert_close(layer(x), x / (1 + 1e-5) ** 0.5)
    layer.running_mean = layer.running_var = None
    torch.testing.assert_close(layer(x), (x - torch.tensor([2.0, 4.0])) / (torch.tensor([2.0, 8.0]) + 1e-5).sqrt())


def test_a_mean_over_all_batches_where_there_is_no_momentum() -> None:
    plain = nn.BatchNorm2d(1, momentum=None)
    layer = InstanceAwareBatchNorm(nn.BatchNorm2d(1, momentum=None), 4)
    for part in (image(0, 1), image(2, 3), image(5, 1)):
        layer(part), plain(part)
    torch.testing.assert_close(layer.running_mean, plain.running_mean)


def test_a_network_has_it_from_the_start_and_takes_weights_of_its_own_kind() -> None:
    network = models.build("iabn", (32, 32, 3), 10, Seed(1), network="resnet20", options={"width": 4}, shrinkage=3.0)
    plain = models.build("resnet20", (32, 32, 3), 10, Seed(1), width=4)
    assert not any(isinstance(layer, nn.BatchNorm2d) for layer in network.modules())
    assert all(layer.shrinkage == 3 for layer in network.modules() if isinstance(layer, InstanceAwareBatchNorm))
    assert sum(isinstance(layer, InstanceAwareBatchNorm) for layer in network.modules()) == 19
    torch.testing.assert_close(dict(network.state_dict()), dict(plain.state_dict()))
    with pytest.raises(UserError, match="iabn replaces batch norm, and mlp has none"):
        models.build("iabn", (8, 8, 1), 10, Seed(1), network="mlp")


def test_training_upstream_goes_through_it() -> None:
    """The weights after some updates are others than with batch norm, and running statistics have moved."""
    trained = {}
    for name, network in (("resnet20", {}), ("iabn", {"network": "resnet20"})):
        options = {"options": {"width": 4}, **network} if network else {"width": 4}
        learner = FineTune(updates=3)
        learner.seed = Seed(0)
        learner.prepare(models.build(name, SHAPE, TASK.width, Seed(1), **options), TASK)
        learner.train(samples(0).x, samples(0).y)
        trained[name] = learner.model.state_dict()
    moved = trained["iabn"]["network.bn1.running_mean"]
    torch.testing.assert_close(moved, trained["resnet20"]["network.bn1.running_mean"], rtol=0.3, atol=0.05)
    assert float(moved.abs().max()) > 1e-3
    difference = trained["iabn"]["network.conv1.weight"] - trained["resnet20"]["network.conv1.weight"]
    assert float(difference.abs().max()) > 1e-4
