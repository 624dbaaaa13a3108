"""res-1 to res-4: blocks of two residual units. res-4 at width 64 is ResNet-18.

Initial weights are PyTorch's defaults, not those of the ResNet paper, as in Seq-to-Final.
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional

from driftline.models.block_networks.base import BlockFamily, conv_and_norm, register_networks


class ResidualUnit(nn.Module):
    """Two 3x3 convolutions with batch norm, added to a shortcut around them."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = conv_and_norm(inputs, outputs, stride)
        self.second = conv_and_norm(outputs, outputs, 1)
        same = stride == 1 and inputs == outputs
        self.shortcut = nn.Identity() if same else conv_and_norm(inputs, outputs, 1, size=1)
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        inner = self.second(functional.relu_(self.first(x)))
        # A 1x1 convolution with a stride takes every second pixel. Taking them first gives the same numbers; done in
        # the convolution, with channels last and fewer than 8 channels, its backward pass writes past its memory
        # (torch 2.13 on a CPU).
        taken = x if self.stride == 1 else x[:, :, :: self.stride, :: self.stride]
        return functional.relu_(inner + self.shortcut(taken))


class ResFamily(BlockFamily):
    """Blocks of two residual units; the first carries the stride."""

    def block(self, number: int) -> nn.Module:
        inputs, outputs, stride = self.sizes(number)
        return nn.Sequential(ResidualUnit(inputs, outputs, stride), ResidualUnit(outputs, outputs, 1))


register_networks("res", ResFamily)
