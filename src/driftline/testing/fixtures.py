"""A small task for checks: images with a bright band whose position is the class."""

from __future__ import annotations

import numpy as np

from driftline.seeds import Seed
from driftline.tasks import Classification
from driftline.types import Network, Samples

TASK = Classification(("low", "middle", "high"))
SHAPE = (8, 8, 1)
STEPS = 3


def small_network(shape: tuple[int, ...], outputs: int, seed: Seed) -> Network:
    """Return a convolution with batch norm and dropout, followed by a linear layer."""
    import torch
    from torch import nn

    with seed.as_torch_default():
        block = [nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.2)]
        network = nn.Sequential(*block, nn.Flatten(), nn.Linear(64, outputs)).eval()
        return network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]


def small_blocks(shape: tuple[int, ...], outputs: int, seed: Seed) -> Network:
    """Return a residual network of named blocks: a stem, one block, a head."""
    from driftline.models.block_networks.base import BlockNetwork
    from driftline.models.block_networks.residual import ResFamily
    from driftline.models.preprocessing import build_seeded

    return build_seeded(lambda: BlockNetwork(ResFamily(1, 2, outputs), shape[-1]), seed)


def samples(k: int) -> Samples:
    """Return the samples of step `k`: small images with a bright band that moves from step to step."""
    rng = np.random.default_rng(k)
    y = rng.permutation(np.arange(18) % TASK.width)
    x = rng.integers(0, 120, (18, *SHAPE), dtype=np.uint8)
    for i, label in enumerate(y):
        x[i, (2 * label + k // 2) % 8] += np.uint8(100)
    return Samples(x=x, y=y, id=100 * k + np.arange(18))
