"""torch's optimizers by name, and schedules of the learning rate."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable
from typing import Any, Literal

import torch
from torch import Tensor

from driftline.errors import UserError
from driftline.types import JsonObject

NAMES = (
    *("Adadelta", "Adafactor", "Adagrad", "Adam", "Adamax", "AdamW"),
    *("ASGD", "NAdam", "RAdam", "RMSprop", "Rprop", "SGD"),
)
"""All optimizers of torch that take a step on any gradients. LBFGS evaluates the loss itself, SparseAdam takes sparse
gradients alone, and Muon matrices alone."""
AMSGRAD = "amsgrad"
"""The name of Adam with the largest mean square so far instead of the present one (Reddi et al., ICLR 2018)."""
FOREACH_MAX_WEIGHTS = 1 << 20
"""The largest number of weights that Adam updates together; in larger networks it goes tensor by tensor."""

LRSchedule = Literal["constant", "linear", "cosine"]
"""How the learning rate goes to zero, if it does."""


def new_optimizer(
    name: str,
    weights: Iterable[Tensor | JsonObject],
    *,
    lr: float,
    weight_decay: float = 0.0,
    momentum: float | None = None,
    nesterov: bool = False,
) -> torch.optim.Optimizer:
    """Return one of torch's optimizers by its name in lower case, or AMSGrad; it gets those of the settings it takes.

    `weights`: tensors or groups of them. `momentum`: the first of `betas` in Adam and its kin; None for the default.
    """
    groups: list[Any] = list(weights)
    if not groups:
        raise UserError("the network has no parameters to train: give one that has")
    kind = {one.lower(): getattr(torch.optim, one) for one in NAMES}["adam" if name == AMSGRAD else name]
    takes = inspect.signature(kind).parameters
    settings: JsonObject = {"lr": lr, "weight_decay": weight_decay, "nesterov": nesterov}
    if name == AMSGRAD:
        settings["amsgrad"] = True
    if momentum is not None:
        settings["momentum"] = momentum
        if "betas" in takes:
            settings["betas"] = (momentum, takes["betas"].default[1])
    if name in ("adam", "adamw", AMSGRAD):
        # Adam step by step over all weights at once saves up to a third on a small network, where calls cost more than
        # sums; on one too large for the cache it takes nearly twice as long. The results are the same, to the bit.
        tensors = [one for group in groups for one in (group["params"] if isinstance(group, dict) else [group])]
        settings["foreach"] = sum(weight.numel() for weight in tensors) <= FOREACH_MAX_WEIGHTS or None
    optimizer: torch.optim.Optimizer = kind(groups, **{key: settings[key] for key in settings if key in takes})
    return optimizer


def lr_factor(schedule: LRSchedule, update: int, updates: int, warmup: int) -> float:
    """Return the factor of the learning rate at an update, counted from 0.

    It rises from 0 in a straight line for `warmup` updates, then falls to 0 at `updates` unless it is constant.

    >>> [lr_factor("linear", k, updates=6, warmup=2) for k in range(8)]
    [0.0, 0.5, 1.0, 0.75, 0.5, 0.25, 0.0, 0.0]
    >>> [round(lr_factor("cosine", k, updates=4, warmup=0), 3) for k in range(5)]
    [1.0, 0.854, 0.5, 0.146, 0.0]
    """
    if update < warmup:
        return update / warmup
    progress = min((update - warmup) / max(updates - warmup, 1), 1.0)
    return {"constant": 1.0, "linear": 1 - progress, "cosine": (1 + math.cos(math.pi * progress)) / 2}[schedule]
