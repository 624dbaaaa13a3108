"""Freeze all but the last layers of a network; a weight and its bias count as one layer."""

from __future__ import annotations

from torch import nn

from driftline.errors import UserError
from driftline.training.cached_features import classifier_layer
from driftline.training.normalization import NORM_LAYERS


def last_layers(model: nn.Module, n: int) -> list[nn.Module]:
    """Return the last n layers with weights, in the order of the network; 1 is the last linear layer.

    Normalization is not a layer of its own: it belongs to the layer before it.

    >>> net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Conv2d(4, 8, 3), nn.BatchNorm2d(8), nn.Flatten(), nn.Linear(8, 2))
    >>> [type(layer).__name__ for layer in last_layers(net, 2)]
    ['Conv2d', 'BatchNorm2d', 'Linear']
    """
    weighted = [layer for layer in model.modules() if list(layer.parameters(recurse=False))]
    end = next(k for k, layer in enumerate(weighted) if layer is classifier_layer(model))
    counted = [k for k in range(end + 1) if not isinstance(weighted[k], NORM_LAYERS)]
    if not 1 <= n <= len(counted):
        raise UserError(f"layers={n}: this network has {len(counted)} layers with weights, so give from 1 to that many")
    return weighted[counted[-n] : end + 1]


def freeze_except(model: nn.Module, layers: list[nn.Module]) -> list[nn.Parameter]:
    """Freeze everything but the weights of these layers, which are returned."""
    model.requires_grad_(False)
    weights = [weight for layer in layers for weight in layer.parameters(recurse=False)]
    for weight in weights:
        weight.requires_grad_(True)
    return weights


def eval_frozen(model: nn.Module) -> None:
    """Put frozen layers into evaluation mode: their features must be the same in training and prediction.

    That is every module with a frozen weight in it, and every one without weights in front of the first trained layer.
    """
    parts = list(model.modules())
    own = [[weight.requires_grad for weight in part.parameters(recurse=False)] for part in parts]
    if all(all(trained) for trained in own):
        return
    first = next((k for k, trained in enumerate(own) if any(trained)), len(parts))
    for k, part in enumerate(parts):
        inside = [weight.requires_grad for weight in part.parameters()]
        if not all(inside) or (not inside and k < first):
            part.training = False
