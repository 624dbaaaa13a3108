"""Penalties on the distance of weights from earlier ones, and gradients, all on one flat vector.

One long vector instead of a list of tensors makes a penalty two to three operations whatever the network; on small
networks that halves the cost of a step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from driftline.device import to_device
from driftline.models.block_networks.base import decayed_parameters
from driftline.registry import register
from driftline.training.loss_scaling import loss_scale, scaled
from driftline.types import State


def trainable_parameters(model: nn.Module) -> list[nn.Parameter]:
    """Return the weights that are trained."""
    return [weight for weight in model.parameters() if weight.requires_grad]


def flatten(tensors: Iterable[Tensor]) -> Tensor:
    """Return the values of tensors as one new vector, through which gradients flow.

    >>> flatten([torch.tensor([[1.0, 2.0]]), torch.tensor(3.0)])
    tensor([1., 2., 3.])
    """
    return torch.cat([tensor.reshape(-1) for tensor in tensors])


def gradient(loss: Tensor, weights: Sequence[Tensor]) -> Tensor:
    """Return the gradient of a loss as one vector, zero for weights without effect; `.grad` does not change."""
    grad = flatten(torch.autograd.grad(scaled(loss), weights, materialize_grads=True))
    return grad if loss_scale() == 1 else grad / loss_scale()


def step_with_gradient(optimizer: torch.optim.Optimizer, weights: Sequence[Tensor], grad: Tensor) -> None:
    """Take one optimizer step with `grad`, one vector, as the gradient; earlier gradients are discarded."""
    optimizer.zero_grad()
    parts = grad.split([weight.numel() for weight in weights])
    for weight, part in zip(weights, parts, strict=True):
        weight.grad = part.view(weight.shape)
    optimizer.step()


def quadratic_penalty(weights: Tensor, anchor: Tensor, importance: Tensor | float) -> Tensor:
    """Return sum_i importance_i (weight_i - anchor_i)^2 on flat vectors; importance 1 gives L2 to the anchor.

    >>> weights, anchor, importance = torch.tensor([[1.0, 3.0], [0.0, 1.0], [5.0, 0.5]])
    >>> quadratic_penalty(weights, anchor, importance)
    tensor(7.)
    """
    return (importance * (weights - anchor).square()).sum()


@dataclass(frozen=True)
class Penalty:
    """A term that keeps weights near earlier ones. A subclass is a frozen dataclass; its fields are part of a key.

    A learner calls `term` on flat vectors. A fit of a plan calls `bind` once, and the returned function at each update.
    """

    weight: float = 0.0
    name: ClassVar[str]

    def term(self, weights: Tensor, anchor: Tensor, importance: Tensor | float = 1.0) -> Tensor:
        """Return the penalty on `weights`, from flat vectors."""
        raise NotImplementedError

    def inherited(self, before: State, same_step: bool) -> State:
        """Return what a fit and those that start from it need of the fit `before`; `same_step`: on the same samples."""
        earlier = before.get("start_weights") if same_step else None
        return {"start_weights": earlier or before["weights"]}

    def bind(self, network: nn.Module, before: State) -> Callable[[], Tensor]:
        """Return a function that computes the penalty on the network's present weights."""
        weights = decayed_parameters(network)
        names = {id(weight): name for name, weight in network.named_parameters()}
        anchor = to_device(flatten([before["start_weights"][names[id(weight)]] for weight in weights]))
        return lambda: self.term(flatten(weights), anchor)


@register("penalty", "l2")
@dataclass(frozen=True)
class L2ToStart(Penalty):
    """weight * sum_i (w_i - anchor_i)^2."""

    name: ClassVar[str] = "l2"

    def term(self, weights: Tensor, anchor: Tensor, importance: Tensor | float = 1.0) -> Tensor:
        return self.weight * quadratic_penalty(weights, anchor, 1.0)


@register("penalty", "l1")
@dataclass(frozen=True)
class L1ToStart(Penalty):
    """weight * sum_i |w_i - anchor_i|."""

    name: ClassVar[str] = "l1"

    def term(self, weights: Tensor, anchor: Tensor, importance: Tensor | float = 1.0) -> Tensor:
        return self.weight * (weights - anchor).abs().sum()


@register("penalty", "fisher")
@dataclass(frozen=True)
class FisherToStart(Penalty):
    """EWC's penalty: weight / 2 * sum_i F_i (w_i - anchor_i)^2, with the Fisher information F of the last step."""

    name: ClassVar[str] = "fisher"
    accumulates: ClassVar[bool] = False
    """Whether F is that of all steps so far."""

    def term(self, weights: Tensor, anchor: Tensor, importance: Tensor | float = 1.0) -> Tensor:
        return self.weight / 2 * quadratic_penalty(weights, anchor, importance)

    def inherited(self, before: State, same_step: bool) -> State:
        return {name: before[name] for name in ("importance", "anchor")}

    def bind(self, network: nn.Module, before: State) -> Callable[[], Tensor]:
        weights = list(network.parameters())  # frozen ones add a constant
        anchor, importance = to_device(before["anchor"]), to_device(before["importance"])
        return lambda: self.term(flatten(weights), anchor, importance)


@register("penalty", "fisher-all")
@dataclass(frozen=True)
class FisherToAll(FisherToStart):
    """EWC's penalty with the Fisher information of all steps so far."""

    name: ClassVar[str] = "fisher-all"
    accumulates: ClassVar[bool] = True


@register("penalty", "adjacent")
@dataclass(frozen=True)
class AdjacentSteps(L2ToStart):
    """weight * sum_t |w_t - w_{t-1}|^2, in a network with weights for several steps."""

    name: ClassVar[str] = "adjacent"

    def inherited(self, before: State, same_step: bool) -> State:
        return {}

    def bind(self, network: nn.Module, before: State) -> Callable[[], Tensor]:
        steps: Any = network
        pairs = [pair for step in range(1, steps.steps) for pair in steps.adjacent_pairs(step)]
        moving = [(new, old) for new, old in pairs if new.requires_grad or old.requires_grad]
        if not moving:
            return lambda: torch.zeros(())
        return lambda: self.term(flatten(new for new, _ in moving), flatten(old for _, old in moving))
