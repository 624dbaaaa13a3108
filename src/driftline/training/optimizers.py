"""torch's optimizers by name, and schedules of the learning rate."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable
from typing import Any, Literal

import torch
from torch import Tensor

from driftline.errors import UserError
from driftline.training.adam import Adam, AdamW
from driftline.training.sgd import SGD
from driftline.types import JsonObject

NAMES = (
    *("Adadelta", "Adafactor", "Adagrad", "Adam", "Adamax", "AdamW"),
    *("ASGD", "NAdam", "RAdam", "RMSprop", "Rprop", "SGD"),
)
"""All optimizers of torch that take a step on any gradients. LBFGS evaluates the loss itself, SparseAdam takes sparse
gradients alone, and Muon matrices alone."""
AMSGRAD = "amsgrad"
"""The name of Adam with the largest mean square so far instead of the present one (Reddi et al., ICLR 2018)."""
LEAN = {"adam": Adam, AMSGRAD: Adam, "adamw": AdamW, "sgd": SGD}
"""What takes the place of torch's optimizer for float32 weights."""

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
    tensors = [one for group in groups for one in (group["params"] if isinstance(group, dict) else [group])]
    if all(weight.dtype == torch.float32 for weight in tensors):
        kind = LEAN.get(name, kind)
    takes = inspect.signature(kind).parameters
    settings: JsonObject = {"lr": lr, "weight_decay": weight_decay, "nesterov": nesterov}
    if name == AMSGRAD:
        settings["amsgrad"] = True
    if momentum is not None:
        settings["momentum"] = momentum
        if "betas" in takes:
            settings["betas"] = (momentum, takes["betas"].default[1])
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
    if schedule == "constant":
        return 1.0
    progress = min((update - warmup) / max(updates - warmup, 1), 1.0)
    return 1 - progress if schedule == "linear" else (1 + math.cos(math.pi * progress)) / 2
