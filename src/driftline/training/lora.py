"""LoRA: low-rank adapters of a frozen network.

Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models", ICLR 2022. A layer with the weights W becomes

    W + (alpha / rank) B A,   A in R^(rank x inputs) uniform in +-1/sqrt(inputs), B in R^(outputs x rank) zero

so that the network is the same at first. Only A, B and the head, which is the last linear layer, are trained. A
convolution has the kernel in A, and in B a kernel of one pixel. All trained linear layers and convolutions below the
head are adapted, except convolutions with groups and layers whose weights another layer multiplies by itself, as
attention does. These are frozen, and so are biases, embeddings and the scales, shifts and statistics of normalization:
batch norm stays in evaluation mode.

At B = 0 the gradient of A is 0, so that a penalty weighted by gradients leaves A free at first; and a penalty on
weights acts on A and B, not on their product.
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, linear
from torch.nn.modules.batchnorm import _BatchNorm

from driftline.device import to_device
from driftline.errors import UserError
from driftline.models.weights import head_name
from driftline.seeds import Seed


class LowRank(nn.Module):
    """The factors of the change of a layer's weights."""

    def __init__(self, weight: Tensor, rank: int, alpha: float, seed: Seed) -> None:
        super().__init__()
        bound = weight[0].numel() ** -0.5
        draws = torch.rand((rank, *weight.shape[1:]), generator=seed.torch())
        self.a = nn.Parameter(to_device((2 * draws - 1) * bound))
        self.b = nn.Parameter(to_device(torch.zeros(len(weight), rank)))
        self.scale = alpha / rank


def add_adapters(model: nn.Module, rank: int, alpha: float, seed: Seed) -> None:
    """Freeze a network but for its head, and add an adapter to each layer that takes one."""
    head = head_name(model)
    layers = {name: layer for name, layer in model.named_modules() if name != head and _takes_adapter(layer)}
    if not layers:
        raise UserError(
            "lora adapts linear layers and convolutions below the head, and this network has none that is trained: use "
            "a deeper network, or leave it out"
        )
    trained = [weight for weight in model.get_submodule(head).parameters() if weight.requires_grad] if head else []
    model.requires_grad_(False)
    for weight in trained:
        weight.requires_grad_()
    for name, layer in layers.items():
        layer.lora = LowRank(cast(Tensor, layer.weight), rank, alpha, seed.child(name))
        layer.register_forward_hook(_add_change)
    for layer in model.modules():
        if isinstance(layer, _BatchNorm):
            layer.register_forward_pre_hook(_evaluate)


def _takes_adapter(layer: nn.Module) -> bool:
    if type(layer) is nn.Conv2d:
        return layer.groups == 1 and layer.padding_mode == "zeros" and layer.weight.requires_grad
    return type(layer) is nn.Linear and layer.weight.requires_grad


def _add_change(layer: nn.Module, given: tuple[Tensor, ...], output: Tensor) -> Tensor:
    """Add what the change of a layer's weights adds to its output."""
    change, x = cast(LowRank, layer.lora), given[0]
    if isinstance(layer, nn.Conv2d):
        inner = conv2d(x, change.a, None, layer.stride, layer.padding, layer.dilation)
        return output + change.scale * conv2d(inner, change.b[:, :, None, None])
    return output + change.scale * linear(linear(x, change.a), change.b)


def _evaluate(layer: nn.Module, given: tuple[Tensor, ...]) -> None:
    layer.training = False
