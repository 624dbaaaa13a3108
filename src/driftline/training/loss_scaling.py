"""Loss scaling for float16, in which small gradients would vanish.

The scale is constant, so that a run has no more state to save. A step whose gradients overflow is skipped, as torch's
own scaler does.
"""

from __future__ import annotations

import torch
from torch import Tensor

from driftline.device import precision

SCALE = 2.0**12


def loss_scale() -> float:
    """Return the factor of losses in the current precision."""
    return SCALE if precision() == "float16" else 1.0


def scaled(loss: Tensor) -> Tensor:
    """Return the loss to differentiate."""
    return loss if loss_scale() == 1 else loss * loss_scale()


def unscale_gradients(optimizer: torch.optim.Optimizer) -> bool:
    """Divide the gradients by the scale; return whether all are finite, so that a step may follow."""
    if loss_scale() == 1:
        return True
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    gradients = [weight.grad.div_(loss_scale()) for weight in weights if weight.grad is not None]
    return all(bool(gradient.isfinite().all()) for gradient in gradients)
