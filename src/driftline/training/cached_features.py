"""Features cached for training: a network without its last layer, or another classifier on top of it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, pad

from driftline.errors import UserError
from driftline.forward_pass import as_written
from driftline.models.preprocessing import to_float_batch
from driftline.training.batches import map_batches
from driftline.training.features import forward_with_features, linear_layers, own_features
from driftline.training.mac_counter import count_macs
from driftline.training.modes import evaluating
from driftline.training.torch_model import torch_model
from driftline.types import Inputs

FEATURE_BATCH = 32
"""The fixed batch size of `extract_features_fixed_batch`: the last digits of features depend on it."""


NARROW_OUTPUTS, PADDED_OUTPUTS = 12, 16
"""A linear layer with fewer outputs than the first is computed with as many as the second: in narrower ones the digits
of a sample's outputs depend on its place in the block (measured for 2 to 11 outputs, not for 12 to 2,048)."""


def classifier_layer(model: nn.Module) -> nn.Linear:
    """Return the classifier: the linear layer that the network names last."""
    return linear_layers(model)[-1]


def features_with_frozen_head(model: nn.Module, x: Tensor) -> Tensor:
    """Return features to train on their own: the last layer gets no gradient.

    The whole network is called, so that its meter counts the pass, and its outputs take part in the backward pass
    with a gradient of zero, because the meter counts that pass when it reaches them.
    """
    last = [weight for weight in classifier_layer(model).parameters() if weight.requires_grad]
    try:
        for weight in last:
            weight.requires_grad_(False)
        outputs, features = forward_with_features(model, x)
    finally:
        for weight in last:
            weight.requires_grad_(True)
    attached: Tensor = _AttachToGraph.apply(features, outputs) if outputs.requires_grad else features
    return attached


def extract_features(model: nn.Module, x: Inputs, batch: int = 128) -> Tensor:
    """Return the features of samples, in evaluation mode; the network does not change."""
    inputs = torch_model(model).encode(x)
    with evaluating(model), torch.no_grad():
        return map_batches(lambda rows: forward_with_features(model, to_float_batch(rows))[1], inputs, batch)


def extract_features_fixed_batch(model: nn.Module, inputs: Tensor) -> list[Tensor]:
    """Return features in blocks of a fixed size, the last one padded: a sample's features do not depend on the others.

    A pass ends before the last linear layer, which is a large part of the work with many classes.
    """

    def stop(layer: nn.Module, args: tuple[Tensor, ...]) -> None:
        raise _StopForwardError(args[0])

    found = []
    narrow = [
        layer for layer in model.modules() if isinstance(layer, nn.Linear) and layer.out_features < NARROW_OUTPUTS
    ]
    hooks = [layer.register_forward_hook(lambda layer, args, _: padded_linear(layer, args[0])) for layer in narrow]
    features = own_features(model)
    if features is None:
        hooks.append(classifier_layer(model).register_forward_pre_hook(stop))
    try:
        with as_written(), evaluating(model), torch.no_grad():
            for start in range(0, len(inputs), FEATURE_BATCH):
                block = inputs[start : start + FEATURE_BATCH]
                if len(block) < FEATURE_BATCH:
                    block = block[torch.arange(FEATURE_BATCH).clamp(max=len(block) - 1)]
                x = to_float_batch(block)
                found.append((_capture(model, x) if features is None else features(x)).flatten(1))
    finally:
        for hook in hooks:
            hook.remove()
    return found


def padded_linear(layer: nn.Module, x: Tensor) -> Tensor:
    """Return the outputs of a linear layer; those of a narrow one do not depend on a sample's place in the block."""
    assert isinstance(layer, nn.Linear)
    if layer.out_features >= NARROW_OUTPUTS:
        return linear(x, layer.weight, layer.bias)
    more = PADDED_OUTPUTS - layer.out_features
    bias = None if layer.bias is None else pad(layer.bias, (0, more))
    return linear(x, pad(layer.weight, (0, 0, 0, more)), bias)[..., : layer.out_features]


def macs_per_sample(model: nn.Module, inputs: Tensor) -> int:
    """Return the multiply-accumulates of a forward pass of one sample, last layer included; 0 without an input."""
    with evaluating(model):
        return count_macs(model, (to_float_batch(inputs[:1]),), {}, backward=False)[0] if len(inputs) else 0


class _StopForwardError(Exception):
    """Stops a pass at the last layer, and holds the input of that layer."""


def _capture(model: nn.Module, x: Tensor) -> Tensor:
    try:
        model(x)
    except _StopForwardError as reached:
        features: Tensor = reached.args[0]
        return features
    raise UserError(f"{type(model).__name__} does not use its last linear layer, whose inputs are the features")


class _AttachToGraph(torch.autograd.Function):
    """Its first argument; the second receives a gradient of zero."""

    @staticmethod
    def forward(ctx: Any, kept: Tensor, attached: Tensor) -> Tensor:
        ctx.zeros = torch.zeros_like(attached)
        return kept.view_as(kept)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        return gradients[0], ctx.zeros
