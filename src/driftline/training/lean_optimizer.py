"""Base class of optimizers that take few calls per step.

torch's own steps spend most of their time around the sums: they keep the number of steps in a tensor per weight, sort
tensors by device, and time themselves.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from driftline.types import JsonObject

TOGETHER = 1 << 20
"""The largest number of weights that are updated together; more do not fit into the cache."""


class LeanOptimizer(torch.optim.Optimizer):
    """The step of an optimizer, in place of torch's."""

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Take one step, as torch's optimizer of the same name."""
        for hook in self._optimizer_step_pre_hooks.values():
            hook(self, (closure,), {})
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for weights in portions(group["params"]):
                self.update(weights, group)
        for hook in self._optimizer_step_post_hooks.values():
            hook(self, (closure,), {})
        return loss

    def update(self, weights: list[Tensor], group: JsonObject) -> None:
        """Update weights that have gradients, with the settings of their group."""
        raise NotImplementedError

    step.hooked = True  # type: ignore[attr-defined]  # torch would wrap it in hooks and a timer

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients."""
        if not set_to_none:
            return super().zero_grad(set_to_none)
        for group in self.param_groups:
            for weight in group["params"]:
                weight.grad = None

    # The compiler, which torch would import here, takes as long to import as torch itself.
    add_param_group = inspect.unwrap(torch.optim.Optimizer.add_param_group)


def portions(weights: list[Tensor]) -> Iterator[list[Tensor]]:
    """Yield the weights that have gradients, as many as are updated together."""
    portion: list[Tensor] = []
    size = 0
    for weight in weights:
        if weight.grad is None:
            continue
        size += weight.numel()
        if portion and size > TOGETHER:
            yield portion
            portion, size = [], weight.numel()
        portion.append(weight)
    if portion:
        yield portion
