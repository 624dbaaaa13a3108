"""SGD for float32 weights: torch's results to the bit, with fewer calls and passes over memory."""

from __future__ import annotations

import torch
from torch import Tensor

from driftline.training.lean_optimizer import LeanOptimizer
from driftline.types import JsonObject

WHOLE_VECTORS = 16
"""torch's fused step rounds the numbers after the last whole vector, of up to as many, in another way."""


class SGD(LeanOptimizer, torch.optim.SGD):
    """torch.optim.SGD, without dampening."""

    def update(self, weights: list[Tensor], group: JsonObject) -> None:
        fused = {id(weight) for weight in weights if group["momentum"] and self._can_fuse(weight)}
        if fused:
            self._fused_step([weight for weight in weights if id(weight) in fused], group)
        if rest := [weight for weight in weights if id(weight) not in fused]:
            self._plain_step(rest, group)

    def _can_fuse(self, weight: Tensor) -> bool:
        """Return whether torch's fused step has the same bits, and finds all numbers of a weight in one order."""
        moment = self.state[weight].get("momentum_buffer")
        if moment is None or weight.grad is None or weight.numel() % WHOLE_VECTORS or not weight.is_cpu:
            return False
        return weight.is_contiguous() and weight.grad.is_contiguous() and bool(moment.is_contiguous())

    def _fused_step(self, weights: list[Tensor], group: JsonObject) -> None:
        """Take a step with momentum in one pass over each weight."""
        torch._fused_sgd_(
            weights,
            [weight.grad for weight in weights if weight.grad is not None],
            [self.state[weight]["momentum_buffer"] for weight in weights],
            lr=group["lr"],
            momentum=group["momentum"],
            weight_decay=group["weight_decay"],
            dampening=0.0,
            nesterov=group["nesterov"],
            maximize=False,
            is_first_step=False,
        )

    def _plain_step(self, weights: list[Tensor], group: JsonObject) -> None:
        gradients = [weight.grad for weight in weights if weight.grad is not None]
        if group["weight_decay"]:
            gradients = list(torch._foreach_add(gradients, weights, alpha=group["weight_decay"]))
        if group["momentum"]:
            moments = self._moments(weights, gradients, group["momentum"])
            if group["nesterov"]:
                gradients = list(torch._foreach_add(gradients, moments, alpha=group["momentum"]))
            else:
                gradients = moments
        torch._foreach_add_(weights, gradients, alpha=-group["lr"])

    def _moments(self, weights: list[Tensor], gradients: list[Tensor], momentum: float) -> list[Tensor]:
        """Return the present moments; a weight without one starts with its gradient."""
        states = [self.state[weight] for weight in weights]
        old = [k for k, state in enumerate(states) if state.get("momentum_buffer") is not None]
        if old:
            known = [states[k]["momentum_buffer"] for k in old]
            torch._foreach_mul_(known, momentum)
            torch._foreach_add_(known, [gradients[k] for k in old])
        for state, gradient in zip(states, gradients, strict=True):
            if state.get("momentum_buffer") is None:
                state["momentum_buffer"] = gradient.clone()
        return [state["momentum_buffer"] for state in states]
