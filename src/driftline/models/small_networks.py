"""Small networks: a linear model, a multi-layer perceptron, and the Yearbook network of Wild-Time."""

from __future__ import annotations

import math
from itertools import pairwise

from torch import Tensor, nn

from driftline.errors import UserError
from driftline.models.preprocessing import Standardize, register_network


@register_network("linear")
def linear(shape: tuple[int, ...], outputs: int) -> nn.Module:
    """Logistic regression as a network: standardised inputs, one linear layer."""
    features = math.prod(shape)
    return nn.Sequential(Standardize(features), nn.Linear(features, outputs))


@register_network("mlp")
def mlp(shape: tuple[int, ...], outputs: int, *, width: int = 256, depth: int = 2) -> nn.Module:
    """Standardised inputs, `depth` hidden layers of `width` rectified units, one linear layer."""
    sizes = [math.prod(shape), *[width] * depth]
    hidden = [layer for a, b in pairwise(sizes) for layer in (nn.Linear(a, b), nn.ReLU())]
    return nn.Sequential(Standardize(sizes[0]), *hidden, nn.Linear(sizes[-1], outputs))


class YearbookNetwork(nn.Module):
    """Four blocks of 3x3 convolution, batch norm, ReLU and 2x2 max-pooling, then the mean over what is left."""

    def __init__(self, outputs: int, width: int) -> None:
        super().__init__()
        blocks = []
        for channels in (3, width, width, width):
            blocks += [nn.Conv2d(channels, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2)]
        self.features = nn.Sequential(*blocks)
        self.head = nn.Linear(width, outputs)

    def forward(self, x: Tensor) -> Tensor:
        x = x.expand(-1, 3, -1, -1)  # grey portraits are three equal channels, as in Wild-Time
        outputs: Tensor = self.head(self.features(x).mean(dim=(2, 3)))
        return outputs


@register_network("yearbook-cnn")
def yearbook_cnn(shape: tuple[int, ...], outputs: int, *, width: int = 32) -> nn.Module:
    """The Wild-Time Yearbook network: 28,962 parameters for two classes."""
    if len(shape) != 3 or min(shape[:2]) < 16 or shape[2] not in (1, 3):
        raise UserError(f"yearbook-cnn takes images of at least 16 x 16 pixels; these inputs have shape {shape}")
    return YearbookNetwork(outputs, width)
