"""Sums over samples of a function of their gradients: squares for Fisher information, absolute values for MAS.

A weight's gradient on one sample is a product of what its layer receives and of the gradient of what it returns, summed
over positions. So one pass of a batch has all that is needed, and for linear layers the sum over samples is a product
of two matrices: (g x)^2 = g^2 x^2. That holds if all trained weights are in linear layers, convolutions and batch norm,
each used once in a pass, and if samples of a batch do not affect each other. Two samples, compared
with passes of one sample at a time, show whether it holds for a network. One at a time works for every network. Both
count the same compute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import batch_norm, unfold

from driftline.device import precision
from driftline.forward_pass import as_written
from driftline.models.preprocessing import to_float_batch
from driftline.training.batches import iterations
from driftline.training.mac_counter import without_counting
from driftline.training.modes import evaluating
from driftline.training.regularization import flatten, gradient, trainable_parameters
from driftline.training.torch_model import torch_model

BATCH = 64
MAX_VALUES = 1 << 22
"""The largest number of values of a convolution's gradients, or of its unfolded inputs, in memory at a time."""
TOLERANCE = 1e-4

Loss = Callable[[Tensor, Tensor], Tensor]
"""The sum of the losses of samples, from raw outputs and targets."""
Function = Callable[[Tensor], Tensor]
"""A function of numbers f with f(a b) = f(a) f(b)."""
Parts = Iterator[tuple[Tensor | None, Tensor]]


def sum_over_samples(
    model: nn.Module,
    inputs: Tensor,
    targets: Tensor,
    rows: Tensor,
    loss: Loss,
    function: Function,
    *,
    batches: bool = True,
) -> Tensor:
    """Return the sum over these rows of a function of the gradient on each, one entry per trainable weight.

    In evaluation mode. `function`: torch.square or torch.abs. `batches`: whether samples may pass together.
    """
    adapter, weights = torch_model(model), trainable_parameters(model)
    total = torch.zeros(sum(weight.numel() for weight in weights), device=weights[0].device)

    def one_by_one(rows: Tensor) -> Tensor:
        result = torch.zeros_like(total)
        for number in iterations(len(rows)):
            row = rows[number : number + 1]
            outputs = adapter.training_outputs(to_float_batch(inputs[row]), targets[row])
            _add(result, gradient(loss(outputs, targets[row]), weights), function)
        return result

    with evaluating(model), torch.enable_grad():
        if batches and len(rows) > 2 and _batches_agree(model, to_float_batch(inputs[rows[:2]]), function):
            parts = rows.split(min(BATCH, adapter.micro_batch or BATCH))
            for number in iterations(len(parts)):
                x, y = to_float_batch(inputs[parts[number]]), targets[parts[number]]
                of_batch = _batch_sum(model, x, partial(_loss_on, loss, y), function)
                total += one_by_one(parts[number]) if of_batch is None else of_batch
            return total
        return one_by_one(rows)


def _add(total: Tensor, grad: Tensor, function: Function) -> None:
    """Add a function of a gradient; squares in one multiply-add, whose rounding committed results have."""
    if function is torch.square:
        total.addcmul_(grad, grad)
    else:
        total += function(grad)


def _loss_on(loss: Loss, targets: Tensor, outputs: Tensor) -> Tensor:
    return loss(outputs, targets)


def _batches_agree(model: nn.Module, two: Tensor, function: Function) -> bool:
    """Return whether a pass of two samples has the same sums as a pass of each, for a combination of the outputs.

    Each weight is compared by itself: gradients of some are much smaller than those of others.
    """
    if torch_model(model).generates_text or precision() != "float32" or not _layers(model):
        return False

    def combine(outputs: Tensor) -> Tensor:
        each = outputs.reshape(len(outputs), -1)
        return (each * torch.arange(1, each.shape[1] + 1, device=each.device).cos()).sum()

    weights = trainable_parameters(model)
    with without_counting(model):
        together = _batch_sum(model, two, combine, function)
        if together is None:
            return False
        apart = torch.stack([function(gradient(combine(model(one)), weights)) for one in two.split(1)]).sum(0)
    pairs = torch.stack((together, apart)).split([weight.numel() for weight in weights], dim=1)
    return all(bool((one - other).norm() <= TOLERANCE * one.norm()) for one, other in pairs)


def _batch_sum(model: nn.Module, x: Tensor, loss: Callable[[Tensor], Tensor], function: Function) -> Tensor | None:
    """Return the sum over the samples of a batch from one pass; None if layers are used in another way than once."""
    calls: dict[nn.Module, list[_Call]] = {layer: [] for layer in _layers(model) or ()}

    def keep(layer: nn.Module, received: tuple[Tensor, ...], output: Tensor) -> Tensor:
        if layer in calls and received:  # not a copy of one, of which the counter counts a pass
            calls[layer].append(_Call(received[0].detach(), output))
        return output.clone()  # which an activation may change in place

    hooks = [layer.register_forward_hook(keep) for layer in calls]
    try:
        with as_written():
            value = loss(model(x))
    finally:
        for hook in hooks:
            hook.remove()
    if not all(len(of_layer) == 1 and of_layer[0].is_plain(layer) for layer, of_layer in calls.items()):
        return None
    of_layers = {layer: call for layer, [call] in calls.items()}
    slopes = torch.autograd.grad(value, [call.output for call in of_layers.values()], materialize_grads=True)
    found: dict[int, Tensor] = {}
    for (layer, call), slope in zip(of_layers.items(), slopes, strict=True):
        parts = FORMULAS[type(layer)](layer, call.received, slope, function)
        found |= {id(weight): part for weight, part in parts if weight is not None}
    return flatten(found[id(weight)] for weight in trainable_parameters(model))


class _Call(NamedTuple):
    """What a layer received and returned."""

    received: Tensor
    output: Tensor

    def is_plain(self, layer: nn.Module) -> bool:
        """Return whether it has gradients, and a linear layer received one row for each sample."""
        rows = self.received.ndim == 2 or not isinstance(layer, nn.Linear)
        return rows and self.output.requires_grad


def _layers(model: nn.Module) -> list[nn.Module] | None:
    """Return the layers with trained weights; None if there is no formula for one."""
    layers = [part for part in model.modules() if any(w.requires_grad for w in part.parameters(recurse=False))]
    return layers if all(_has_formula(layer) for layer in layers) else None


def _has_formula(layer: Any) -> bool:
    if isinstance(layer, nn.Conv2d) and (layer.groups != 1 or layer.padding_mode != "zeros"):
        return False
    return type(layer) in FORMULAS and not isinstance(getattr(layer, "padding", None), str)


def _linear(layer: nn.Linear, x: Tensor, slope: Tensor, function: Function) -> Parts:
    yield layer.weight, function(slope).T @ function(x)
    yield layer.bias, function(slope).sum(0)


def _convolution(layer: nn.Conv2d, x: Tensor, slope: Tensor, function: Function) -> Parts:
    slope = slope.flatten(2)
    weight = torch.zeros_like(layer.weight).flatten(1)
    at_once = max(1, MAX_VALUES // max(weight.numel(), weight.shape[1] * slope.shape[2]))
    for some, slopes in zip(x.split(at_once), slope.split(at_once), strict=True):
        patches = unfold(some, layer.kernel_size, layer.dilation, layer.padding, layer.stride)  # type: ignore[arg-type]
        weight += function(slopes @ patches.transpose(1, 2)).sum(0)
    yield layer.weight, weight.view(layer.weight.shape)
    yield layer.bias, function(slope.sum(2)).sum(0)


def _batch_norm(layer: nn.BatchNorm2d, x: Tensor, slope: Tensor, function: Function) -> Parts:
    normalized = batch_norm(
        x, layer.running_mean, layer.running_var, eps=layer.eps, training=not layer.track_running_stats
    )
    yield layer.weight, function((slope * normalized).reshape(*slope.shape[:2], -1).sum(2)).sum(0)
    yield layer.bias, function(slope.reshape(*slope.shape[:2], -1).sum(2)).sum(0)


FORMULAS: dict[type, Callable[..., Parts]] = {
    nn.Linear: _linear,
    nn.Conv2d: _convolution,
    nn.BatchNorm1d: _batch_norm,
    nn.BatchNorm2d: _batch_norm,
}
