"""A linear model and a multi-layer perceptron."""

from __future__ import annotations

import math
from itertools import pairwise

from torch import nn

from driftline.models.preprocessing import Standardize, register_network


@register_network("linear")
def linear(shape: tuple[int, ...], outputs: int) -> nn.Module:
    """Logistic regression as a network: standardized inputs, one linear layer."""
    features = math.prod(shape)
    return nn.Sequential(Standardize(features), nn.Linear(features, outputs))


@register_network("mlp")
def mlp(
    shape: tuple[int, ...],
    outputs: int,
    *,
    width: int = 256,  # units of a hidden layer
    depth: int = 2,  # number of hidden layers
) -> nn.Module:
    """Standardized inputs, `depth` hidden layers of `width` rectified units, one linear layer."""
    sizes = [math.prod(shape), *[width] * depth]
    hidden = [layer for a, b in pairwise(sizes) for layer in (nn.Linear(a, b), nn.ReLU())]
    return nn.Sequential(Standardize(sizes[0]), *hidden, nn.Linear(sizes[-1], outputs))
