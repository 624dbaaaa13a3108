"""Features of a network, the inputs of its last layer, together with its outputs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from torch import Tensor, nn

from driftline.errors import UserError
from driftline.forward_pass import as_written
from driftline.types import Network


def forward_with_features(model: nn.Module, x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the outputs and the features: the inputs of the network's last linear layer.

    They are what its own `features(x)` returns, otherwise the input of the last linear layer. Last is the linear layer
    that is called last, not the one that was written last in the network's class, so that this holds for any network
    that ends in one. Both results are part of the graph.
    """
    if features := own_features(model):
        return model(x), features(x).flatten(1)
    layers = linear_layers(model)
    caught: list[Tensor] = []

    def catch(layer: nn.Module, args: tuple[Tensor, ...]) -> None:
        # A meter may run a copy of the network during this very pass, and the hooks are copied with it.
        if any(layer is mine for mine in layers):
            caught.append(args[0])

    hooks = [layer.register_forward_pre_hook(catch) for layer in layers]
    try:
        with as_written(checkpointed=True):
            outputs: Tensor = model(x)
    finally:
        for hook in hooks:
            hook.remove()
    return outputs, caught[-1].flatten(1)


def own_features(model: Network) -> Callable[[Tensor], Tensor] | None:
    """Return a network's method `features`, if it has one; a layer of this name does not count."""
    found: Callable[[Tensor], Tensor] | None = getattr(model, "features", None)
    return None if isinstance(found, nn.Module) else found


def has_features(model: Network) -> bool:
    """Return whether a network has features."""
    return own_features(model) is not None or any(isinstance(layer, nn.Linear) for layer in model.modules())


def check_features(model: Network) -> None:
    """Refuse a network without features."""
    if not has_features(model):
        linear_layers(model)


def feature_width(model: Network) -> int:
    """Return the number of features: the network's own `n_features`, otherwise the inputs of its last linear layer."""
    width: int = model.n_features if hasattr(model, "n_features") else linear_layers(model)[-1].in_features
    return width


def linear_layers(model: nn.Module) -> list[nn.Linear]:
    """Return a network's linear layers; refuse a network without any."""
    layers = [layer for layer in model.modules() if isinstance(layer, nn.Linear)]
    if not layers:
        name = type(model).__name__
        raise UserError(
            f"the features of a network are the input of its last linear layer, and {name} has none: give it a method "
            "features(x) and an attribute n_features, their number"
        )
    return layers


def unit_length(rows: np.ndarray) -> np.ndarray:
    """Return rows normalized to length one; a row of zeros stays.

    >>> unit_length(np.float32([[0, 3], [0, 0]])).tolist()
    [[0.0, 1.0], [0.0, 0.0]]
    """
    length = np.sqrt(np.square(rows).sum(axis=1, keepdims=True))
    found: np.ndarray = rows / np.where(length > 0, length, 1)
    return found
