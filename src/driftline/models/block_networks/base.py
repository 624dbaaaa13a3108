"""Networks made of named layers: conv1, layer1 to layerN, fc. The twelve networks of Seq-to-Final share this base.

A `BlockFamily` defines the layers and builds them; `conv`, `dense` and `res` each hold one. All
channel numbers grow with `width`; 64 gives the networks of the paper.

Where paper, code and this differ: Table 7 of the paper counts neither batch norm nor the 1x1 shortcuts of residual
networks. In the authors' code the batch-norm statistics of frozen layers keep moving (`moving_statistics=True`); here
they are fixed by default. Images are standardized per channel in front of conv1; the authors' code feeds raw pixels.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from driftline.device import dropout
from driftline.errors import UserError, unknown_name
from driftline.models.preprocessing import StandardizeChannels, register_network

STEM, HEAD = "conv1", "fc"

# For each number of blocks: the channels between the blocks in multiples of the width, and the blocks' strides.
CHANNELS = {1: (1, 8), 2: (1, 2, 8), 3: (1, 2, 4, 8), 4: (1, 1, 2, 4, 8)}
STRIDES = {1: (2,), 2: (2, 2), 3: (2, 2, 2), 4: (1, 2, 2, 2)}


@dataclass(frozen=True)
class BlockFamily(ABC):
    """What the layers of one architecture are made of. It makes fresh modules and holds none."""

    depth: int
    """The number of blocks."""
    width: int
    """The channels after the stem."""
    outputs: int

    no_side_block_reason: ClassVar[str] = ""
    """Why this family has no side blocks, if it has none."""

    def __post_init__(self) -> None:
        if self.width < 1:
            raise UserError(f"the width of a network is at least 1, not {self.width}")

    @property
    def layer_names(self) -> list[str]:
        return [STEM, *(f"layer{number}" for number in range(1, self.depth + 1)), HEAD]

    def layer(self, name: str) -> nn.Module:
        """Return a new layer of this name."""
        if name == STEM:
            return self.stem()
        return self.head() if name == HEAD else self.block(_number(name))

    def side(self, name: str, kind: str) -> nn.Module:
        """Return a new side module for this layer. For the stem and the head it is always a full layer."""
        one_layer = kind == "side-1" and name not in (STEM, HEAD)
        return self.one_layer_side(_number(name)) if one_layer else self.layer(name)

    def stem(self) -> nn.Module:
        convolution = nn.Conv2d(3, self.width, 7, stride=2, padding=3, bias=False)
        return nn.Sequential(convolution, nn.BatchNorm2d(self.width), nn.ReLU(True), nn.MaxPool2d(3, 2, padding=1))

    @abstractmethod
    def block(self, number: int) -> nn.Module:
        """Return block `number`, counted from 1."""

    def one_layer_side(self, number: int) -> nn.Module:
        """Return one convolution with batch norm, from the block's inputs to its outputs."""
        return conv_and_norm(*self.sizes(number))

    def head(self) -> nn.Module:
        features = self.sizes(self.depth)[1]
        return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(features, self.outputs))

    def sizes(self, number: int) -> tuple[int, int, int]:
        """Return the input channels, output channels and stride of a block."""
        channels = CHANNELS[self.depth]
        return channels[number - 1] * self.width, channels[number] * self.width, STRIDES[self.depth][number - 1]


def _number(name: str) -> int:
    return int(name.removeprefix("layer"))


def conv_and_norm(inputs: int, outputs: int, stride: int, size: int = 3) -> nn.Sequential:
    """Return a convolution without bias, then batch norm, without a nonlinearity."""
    convolution = nn.Conv2d(inputs, outputs, size, stride, padding=size // 2, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs))


class LayeredNetwork(nn.Module):
    """Named layers in a row behind a standardizing layer, with dropout between them."""

    layers: nn.ModuleDict

    def __init__(self, family: BlockFamily, standardize: StandardizeChannels) -> None:
        super().__init__()
        self.family = family
        self.standardize = standardize
        self.dropout = 0.0
        """The share of numbers that training drops after conv1 and after every block, never after fc."""
        self.moving_statistics = False
        """Whether batch-norm statistics of frozen layers move in training, as in the authors' code."""

    @property
    def layer_names(self) -> list[str]:
        return self.family.layer_names

    def train(self, mode: bool = True) -> LayeredNetwork:
        """Set training mode for all but frozen batch norm, which stays in evaluation mode."""
        super().train(mode)
        if not self.moving_statistics:
            for module in self.modules():
                if isinstance(module, nn.BatchNorm2d) and not module.weight.requires_grad:
                    module.eval()
        return self

    def forward_layers(self, x: Tensor, *extra: object) -> Tensor:
        """Pass images through all layers; each layer also gets `extra`."""
        x = self.standardize(x).expand(-1, 3, -1, -1)  # gray is three equal channels
        *trunk, head = self.layers.values()
        for layer in trunk:
            x = layer(x, *extra)
            if self.dropout and self.training:
                x = dropout(x, self.dropout)
        logits: Tensor = head(x, *extra)
        return logits


class BlockNetwork(LayeredNetwork):
    """One network of a family, for images (n, 1 or 3 channels, height, width) with values from 0 to 1."""

    def __init__(self, family: BlockFamily, channels: int) -> None:
        super().__init__(family, StandardizeChannels(channels))
        self.layers = nn.ModuleDict({name: family.layer(name) for name in family.layer_names})

    def forward(self, x: Tensor) -> Tensor:
        return self.forward_layers(x)


def network_factory(family: type[BlockFamily], depth: int) -> Callable[..., nn.Module]:
    """Return the function `(shape, outputs, *, width)` that builds a network of this family."""

    def make(
        shape: tuple[int, ...],
        outputs: int,
        *,
        width: int = 64,  # channels, or units, of a layer
    ) -> nn.Module:
        if len(shape) != 3 or min(shape[:2]) < 8 or shape[2] not in (1, 3):
            raise UserError(
                "this network takes gray or color images (height, width, 1 or 3) of at least 8 x 8 pixels; "
                f"these inputs have shape {shape}"
            )
        return BlockNetwork(family(depth, width, outputs), shape[2])

    blocks = "1 block" if depth == 1 else f"{depth} blocks"
    make.__doc__ = f"A stem, {blocks} ({(family.__doc__ or '').splitlines()[0].rstrip('.').lower()}) and a head."
    return make


def register_networks(name: str, family: type[BlockFamily]) -> None:
    """Make `<name>-1` to `<name>-4` known."""
    for depth in CHANNELS:
        register_network(f"{name}-{depth}")(network_factory(family, depth))


def freeze(net: LayeredNetwork, parts: Iterable[nn.Module], *, moving_statistics: bool = False) -> None:
    """Freeze these parts of a network; their batch norm is fixed too unless `moving_statistics`."""
    for part in parts:
        part.requires_grad_(False)
    net.moving_statistics = moving_statistics
    net.train(net.training)


def train_only_layers(net: LayeredNetwork, names: Iterable[str], *, moving_statistics: bool = False) -> None:
    """Train the layers of these names and freeze all others."""
    names = list(names)
    for name in names:
        if name not in net.layers:
            raise unknown_name("layer", name, net.layers)
    net.requires_grad_(True)
    freeze(net, (layer for name, layer in net.layers.items() if name not in names), moving_statistics=moving_statistics)


def weight_parameters(module: nn.Module) -> dict[str, nn.Parameter]:
    """Return the weights of convolutions and linear layers and the head's bias, by name: all but batch norm."""
    return {
        f"{path}.{name}" if path else name: parameter
        for path, part in module.named_modules()
        if not isinstance(part, nn.BatchNorm2d)
        for name, parameter in part.named_parameters(recurse=False)
    }


def decayed_parameters(net: nn.Module) -> list[nn.Parameter]:
    """Return the parameters under weight decay: all trained weights, without batch norm."""
    return [weight for weight in weight_parameters(net).values() if weight.requires_grad]
