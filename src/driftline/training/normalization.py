"""Normalization layers: find them, and let batch norm use the statistics of the present batch."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

NORM_LAYERS = (_BatchNorm, nn.LayerNorm, nn.GroupNorm)


def norm_layers(model: nn.Module) -> dict[str, nn.Module]:
    """Return all batch, layer and group norm layers of a network, by name, in order."""
    return {name: layer for name, layer in model.named_modules() if isinstance(layer, NORM_LAYERS)}


def use_batch_statistics(model: nn.Module) -> int:
    """Let batch norm normalize by the mean and variance of the batch it is given, always; how many layers do so now.

    The running statistics are removed, so they neither move nor count, in training and evaluation mode alike.
    """
    layers = [layer for layer in model.modules() if isinstance(layer, _BatchNorm)]
    for layer in layers:
        layer.track_running_stats = False
        layer.running_mean = layer.running_var = layer.num_batches_tracked = None
    return len(layers)


def work_around_group_norm_bug(model: nn.Module) -> None:
    """Keep group norm from images with channels last where nothing before it is trained: its backward pass crashes.

    So it is in torch 2.13 on a CPU. The copy changes no number.
    """
    for layer in model.modules():
        if isinstance(layer, nn.GroupNorm):
            layer.register_forward_pre_hook(_make_contiguous)


def _make_contiguous(layer: nn.Module, given: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return tuple(x if x.requires_grad else x.contiguous() for x in given)


def affine_parameters(layers: Iterable[nn.Module]) -> list[nn.Parameter]:
    """Return the weights of normalization layers."""
    return [weight for layer in layers for weight in layer.parameters(recurse=False)]


def affine_parameters_below_last_block(layers: Mapping[str, nn.Module]) -> list[nn.Parameter]:
    """Return the weights of all normalization layers but those of the last block; of all if there is one block."""
    left_out = last_block(layers)
    return affine_parameters([layer for name, layer in layers.items() if name not in left_out] or layers.values())


def mean_scale_per_block(model: nn.Module) -> dict[str, float]:
    """Return the mean absolute scale of each block with normalization layers, by the block's name."""
    blocks: dict[str, list[Tensor]] = {}
    for name, layer in norm_layers(model).items():
        if isinstance(layer.weight, Tensor):
            blocks.setdefault(_block(name), []).append(layer.weight.detach().flatten())
    return {block: float(torch.cat(scales).abs().mean()) for block, scales in blocks.items()}


def last_block(names: Iterable[str]) -> set[str]:
    """Return the layers that are in the same block as the last one.

    A block's name is a layer's name up to its first number: `layer4` of `layer4.2.bn3`, `blocks.11` of
    `blocks.11.norm2`.

    >>> sorted(last_block(["layer1.0.bn1", "layer2.0.bn1", "layer2.1.bn2"]))
    ['layer2.0.bn1', 'layer2.1.bn2']
    """
    blocks = {name: _block(name) for name in names}
    last = list(blocks.values())[-1]
    return {name for name, block in blocks.items() if block == last}


def _block(name: str) -> str:
    found = re.match(r".*?\d+(?=\.|$)", name)
    return found.group() if found else name
