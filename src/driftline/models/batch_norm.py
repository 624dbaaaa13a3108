"""Replace the batch norm of a network by other layers."""

from __future__ import annotations

from collections.abc import Callable

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm


def replace_batch_norm(model: nn.Module, make: Callable[[_BatchNorm], nn.Module]) -> None:
    """Replace each batch norm layer that has running statistics by what `make` returns for it."""
    for parent in list(model.modules()):
        for name, layer in list(parent.named_children()):
            if isinstance(layer, _BatchNorm) and layer.running_mean is not None:
                setattr(parent, name, make(layer))
