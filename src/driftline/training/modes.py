"""Training and evaluation mode as context managers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

from driftline.seeds import Seed


@contextmanager
def training(model: nn.Module, seed: Seed) -> Iterator[None]:
    """Use training mode, with dropout and other noise drawn from this seed."""
    model.train()
    try:
        with seed.as_torch_default():
            yield
    finally:
        model.eval()


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Use evaluation mode, then restore the mode of each layer."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, mode in modes:
            module.training = mode


@contextmanager
def only_training(model: nn.Module, kind: type[nn.Module]) -> Iterator[None]:
    """Use training mode for the layers of one kind alone; everything else stays in its mode."""
    layers = [layer for layer in model.modules() if isinstance(layer, kind)]
    for layer in layers:
        layer.training = True
    try:
        yield
    finally:
        for layer in layers:
            layer.training = False
