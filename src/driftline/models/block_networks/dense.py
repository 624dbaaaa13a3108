"""dense-1 to dense-4: densely connected blocks. dense-4 at width 64 has the layers of DenseNet-121.

Every layer of a block adds `width / 2` channels to what it saw, through a bottleneck of `2 * width`. Each block but the
last ends with a transition that halves channels and pixels. Initial weights are PyTorch's defaults;
`densenet121` is the same network with published weights.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from driftline.errors import UserError
from driftline.models.block_networks.base import BlockFamily, register_networks

LAYERS_PER_BLOCK = {1: (16,), 2: (6, 16), 3: (6, 12, 16), 4: (6, 12, 24, 16)}


def norm_relu(channels: int) -> list[nn.Module]:
    """Return batch norm and a ReLU, which precede every convolution of a dense block."""
    return [nn.BatchNorm2d(channels), nn.ReLU(True)]


class DenseLayer(nn.Module):
    """The inputs, followed by `growth` channels computed from them."""

    def __init__(self, inputs: int, growth_rate: int) -> None:
        super().__init__()
        bottleneck = 4 * growth_rate
        self.new = nn.Sequential(
            *norm_relu(inputs),
            nn.Conv2d(inputs, bottleneck, 1, bias=False),
            *norm_relu(bottleneck),
            nn.Conv2d(bottleneck, growth_rate, 3, padding=1, bias=False),
        )

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([x, self.new(x)], 1)


class DenseFamily(BlockFamily):
    """Dense blocks, each with its transition; the head starts with batch norm and a ReLU."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.width % 2:
            raise UserError(f"the width of a dense network is even, not {self.width}: its layers add half of it")

    def block(self, number: int) -> nn.Module:
        inputs, outputs, _ = self.sizes(number)
        growth, layers = self.width // 2, LAYERS_PER_BLOCK[self.depth][number - 1]
        dense = [DenseLayer(inputs + before * growth, growth) for before in range(layers)]
        if number == self.depth:
            return nn.Sequential(*dense)
        grown = inputs + layers * growth
        # Odd sizes round up, as in a convolution of stride 2 beside the block; even sizes are as in DenseNet.
        pool = nn.AvgPool2d(2, ceil_mode=True)
        return nn.Sequential(*dense, *norm_relu(grown), nn.Conv2d(grown, outputs, 1, bias=False), pool)

    def head(self) -> nn.Module:
        plain = super().head()
        return nn.Sequential(*norm_relu(self.sizes(self.depth)[1]), *plain.children())

    def sizes(self, number: int) -> tuple[int, int, int]:
        outputs = self.width
        for block in range(1, number + 1):
            inputs, outputs = outputs, outputs + LAYERS_PER_BLOCK[self.depth][block - 1] * self.width // 2
            if block < self.depth:
                outputs //= 2
        return inputs, outputs, 1 if number == self.depth else 2


register_networks("dense", DenseFamily)
