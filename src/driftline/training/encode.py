"""A network without its last layer: features to train by themselves, and to hand to another classifier."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from driftline.models.inputs import as_input, as_tensor
from driftline.training.features import linear_layers, with_features
from driftline.training.fit import evaluating


def last_linear(model: nn.Module) -> nn.Linear:
    """The layer that turns features into outputs: the linear layer that the network names last."""
    return linear_layers(model)[-1]


def only_features(model: nn.Module, x: Tensor) -> Tensor:
    """Features to train by themselves: the last layer gets no gradient.

    The whole network is called, so that its meter counts the pass, and its outputs take part in the backward pass
    with a gradient of zero, because the meter counts that pass when it reaches them.
    """
    last = [weight for weight in last_linear(model).parameters() if weight.requires_grad]
    try:
        for weight in last:
            weight.requires_grad_(False)
        outputs, features = with_features(model, x)
    finally:
        for weight in last:
            weight.requires_grad_(True)
    attached: Tensor = _Attached.apply(features, outputs) if outputs.requires_grad else features
    return attached


def embed(model: nn.Module, x: Any, batch: int = 128) -> Tensor:
    """Features of samples as they are stored, in evaluation mode; the network is left as it was."""
    inputs = as_tensor(x, model)
    starts = range(0, max(len(inputs), 1), batch)
    with evaluating(model), torch.no_grad():
        return torch.cat([with_features(model, as_input(inputs[i : i + batch]))[1] for i in starts])


class _Attached(torch.autograd.Function):
    """Its first argument; the second receives a gradient of zero."""

    @staticmethod
    def forward(ctx: Any, kept: Tensor, attached: Tensor) -> Tensor:
        ctx.zeros = torch.zeros_like(attached)
        return kept.view_as(kept)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        return gradients[0], ctx.zeros
