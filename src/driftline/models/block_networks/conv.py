"""conv-1 to conv-4: after the stem, every block is one 3x3 convolution with batch norm.

No block has a ReLU: the stem's is the only one of the network, as in the authors' code.
"""

from __future__ import annotations

from typing import ClassVar

from torch import nn

from driftline.models.block_networks.base import BlockFamily, conv_and_norm, register_networks


class ConvFamily(BlockFamily):
    """Blocks of one convolution and batch norm."""

    no_side_block_reason: ClassVar[str] = (
        "a conv network has no side blocks of its own: its block is one convolution with batch norm, which is what "
        "'side-1' adds. The paper prints these results under '-1' and a dash under '-B'. Use 'side-1', or a dense or "
        "res network"
    )

    def block(self, number: int) -> nn.Module:
        return conv_and_norm(*self.sizes(number))


register_networks("conv", ConvFamily)
