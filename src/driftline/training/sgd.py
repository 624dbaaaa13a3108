"""SGD for float32 weights: torch's results to the bit, with fewer calls around its sums."""

from __future__ import annotations

import torch
from torch import Tensor

from driftline.training.lean_optimizer import LeanOptimizer
from driftline.types import JsonObject


class SGD(LeanOptimizer, torch.optim.SGD):
    """torch.optim.SGD, without dampening."""

    def update(self, weights: list[Tensor], group: JsonObject) -> None:
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
